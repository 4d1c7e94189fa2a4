import java.util.concurrent.*;
import java.util.concurrent.locks.*;
public class Locks {
    static final Object A = new Object(), B = new Object(), Q = new Object();
    static final ReentrantLock R1 = new ReentrantLock(), R2 = new ReentrantLock(true), BUSY = new ReentrantLock();
    static final ReentrantReadWriteLock RW = new ReentrantReadWriteLock();
    static final Semaphore SEM = new Semaphore(0);
    static final CountDownLatch LATCH = new CountDownLatch(2);
    static final Condition COND = BUSY.newCondition();
    static synchronized void stat() { sleep(); }
    synchronized void inst() { sleep(); }
    static void sleep() { try { Thread.sleep(1000000); } catch (InterruptedException e) {} }
    static void go(String n, Runnable r) { Thread t = new Thread(r, n); t.setDaemon(true); t.start(); }
    public static void main(String[] a) throws Exception {
        CyclicBarrier both = new CyclicBarrier(2), both2 = new CyclicBarrier(2);
        go("dead-a", () -> { synchronized (A) { w(both); synchronized (B) { sleep(); } } });
        go("dead-b", () -> { synchronized (B) { w(both); synchronized (A) { sleep(); } } });
        go("dead-1", () -> { R1.lock(); w(both2); R2.lock(); });
        go("dead-2", () -> { R2.lock(); w(both2); R1.lock(); });
        go("owner", () -> { BUSY.lock(); BUSY.lock(); sleep(); });
        go("cond", () -> { try { ReentrantLock l = new ReentrantLock(); l.lock(); l.newCondition().await(); } catch (Exception e) {} });
        Thread.sleep(200);
        for (int i = 0; i < 3; i++) go("waits-" + i, () -> BUSY.lock());
        go("writer", () -> { RW.writeLock().lock(); sleep(); });
        Thread.sleep(200);
        go("reader", () -> RW.readLock().lock());
        go("sem", () -> { try { SEM.acquire(); } catch (Exception e) {} });
        go("latch", () -> { try { LATCH.await(); } catch (Exception e) {} });
        go("static-owner", () -> stat());
        Locks l = new Locks();
        go("inst-owner", () -> l.inst());
        go("waiter-q", () -> { synchronized (Q) { try { Q.wait(); } catch (InterruptedException e) {} } });
        Thread.sleep(200);
        go("static-blocked", () -> stat());
        go("inst-blocked", () -> l.inst());
        go("inst-blocked-2", () -> l.inst());
        Thread.sleep(500);
        System.out.println("ready"); 
        Thread.sleep(600000);
    }
    static void w(CyclicBarrier b) { try { b.await(); } catch (Exception e) {} }
}
