// walk DUMP: the least work for a histogram. Maps the dump, hops over the top-level records, then visits every record of every
// heap segment once, in parallel, counts instances per class and collects the object ids. Resolves no name, works out no size.
//
// An experiment to measure against, not a tool: it reads HotSpot's segments with 8-byte ids only, trusts every length, and panics on anything else.
use rayon::prelude::*;
use std::collections::HashMap;
use std::time::Instant;
fn u4(b: &[u8], p: usize) -> u32 {
    u32::from_be_bytes(b[p..p + 4].try_into().unwrap())
}
fn u8_(b: &[u8], p: usize) -> u64 {
    u64::from_be_bytes(b[p..p + 8].try_into().unwrap())
}
fn u2(b: &[u8], p: usize) -> usize {
    u16::from_be_bytes(b[p..p + 2].try_into().unwrap()) as usize
}
const SZ: [usize; 12] = [0, 0, 8, 0, 1, 2, 4, 8, 1, 2, 4, 8];
fn seg(b: &[u8]) -> (u64, u64, HashMap<u64, (u64, u64)>, Vec<u64>) {
    let mut p = 0;
    let mut n = 0u64;
    let mut refs = 0u64;
    let mut h: HashMap<u64, (u64, u64)> = HashMap::new();
    let mut ids = Vec::new();
    let mut last = 0u64;
    let mut lc = (0u64, 0u64);
    while p < b.len() {
        let t = b[p];
        p += 1;
        match t {
            0xff => p += 8,
            0x01 => p += 16,
            0x02 | 0x03 => p += 16,
            0x04 | 0x06 => p += 12,
            0x05 | 0x07 => p += 8,
            0x08 => p += 16,
            0x20 => {
                p += 8 + 4 + 8 * 6 + 4;
                let c = u2(b, p);
                p += 2;
                for _ in 0..c {
                    let ty = b[p + 2] as usize;
                    p += 3 + SZ[ty];
                }
                let c = u2(b, p);
                p += 2;
                for _ in 0..c {
                    let ty = b[p + 8] as usize;
                    p += 9 + SZ[ty];
                }
                let c = u2(b, p);
                p += 2 + 9 * c;
                n += 1;
            }
            0x21 => {
                let id = u8_(b, p);
                ids.push(id);
                let c = u8_(b, p + 12);
                let l = u4(b, p + 20) as usize;
                if c != last {
                    if lc.0 > 0 {
                        let e = h.entry(last).or_default();
                        e.0 += lc.0;
                        e.1 += lc.1;
                    }
                    last = c;
                    lc = (0, 0);
                }
                lc.0 += 1;
                lc.1 += l as u64;
                p += 24 + l;
                n += 1;
            }
            0x22 => {
                ids.push(u8_(b, p));
                let k = u4(b, p + 12) as usize;
                let c = u8_(b, p + 16);
                let e = h.entry(c).or_default();
                e.0 += 1;
                e.1 += k as u64;
                refs += k as u64;
                p += 24 + 8 * k;
                n += 1;
            }
            0x23 => {
                ids.push(u8_(b, p));
                let k = u4(b, p + 12) as usize;
                let ty = b[p + 16] as usize;
                let e = h.entry(ty as u64).or_default();
                e.0 += 1;
                e.1 += (k * SZ[ty]) as u64;
                p += 17 + k * SZ[ty];
                n += 1;
            }
            x => panic!("tag {x:#x}"),
        }
    }
    if lc.0 > 0 {
        let e = h.entry(last).or_default();
        e.0 += lc.0;
        e.1 += lc.1;
    }
    (n, refs, h, ids)
}
fn main() {
    let f = std::fs::File::open(std::env::args().nth(1).unwrap()).unwrap();
    let t = Instant::now();
    let m = unsafe { memmap2::Mmap::map(&f).unwrap() };
    m.advise(memmap2::Advice::Sequential).ok();
    let b = &m[..];
    let mut p = b.iter().position(|&x| x == 0).unwrap() + 1 + 12;
    let mut segs = vec![];
    while p + 9 <= b.len() {
        let t = b[p];
        let l = u4(b, p + 5) as usize;
        if t == 0x1c || t == 0x0c {
            segs.push((p + 9, l));
        }
        p += 9 + l;
    }
    println!("segs {} in {:?}", segs.len(), t.elapsed());
    let r: Vec<_> = segs.par_iter().map(|&(o, l)| seg(&b[o..o + l])).collect();
    let n: u64 = r.iter().map(|x| x.0).sum();
    println!("objects {} walk {:?}", n, t.elapsed());
    let mut sorted = 0usize;
    let mut tot = 0usize;
    for x in &r {
        for w in x.3.windows(2) {
            tot += 1;
            if w[0] < w[1] {
                sorted += 1;
            }
        }
    }
    println!("sorted within segs {}/{}", sorted, tot);
    let mx = r.iter().flat_map(|x| x.3.iter()).max();
    let mn = r.iter().flat_map(|x| x.3.iter()).min();
    println!("{:x?} {:x?}", mn, mx);
}
