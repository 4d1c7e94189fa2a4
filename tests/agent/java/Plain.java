// Provenance: written for this project, as a program for which the agent of JDK 8 and this one record the same.
import java.util.*;
public class Plain {
  static class Node { Node next; int v; Node(int v, Node n){this.v=v;next=n;} }
  static Map m = new HashMap();
  static int fib(int n){ return n<2?n:fib(n-1)+fib(n-2); }
  static void alloc(){ for(int i=0;i<500;i++){ Node h=null; for(int j=0;j<10;j++) h=new Node(j,h); m.put(Integer.valueOf(i),h);} }
  public static void main(String[] a) throws Exception { alloc(); System.out.println(fib(18)); final Object l=new Object(); Thread t=new Thread(new Runnable(){public void run(){ synchronized(l){ try{Thread.sleep(300);}catch(Exception e){} } }},"holder"); t.start(); Thread.sleep(50); synchronized(l){ System.out.println("got"); } t.join(); }
}
