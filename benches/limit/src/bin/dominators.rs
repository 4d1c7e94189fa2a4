// dominators DUMP: the least work for a dominator tree in memory. Walk, address index, references, depth-first order, reversed
// rows, semi-NCA, retained counts; prints to stderr the time at which each step was done, and the memory at its end.
//
// An experiment to measure against, not a tool: it reads HotSpot's segments with 8-byte ids only (x86-64), writes nothing, checks nothing.
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::atomic::*;
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
#[derive(Default)]
struct Seg {
    ids: Vec<u64>,
    off: Vec<u64>,
    roots: Vec<u64>,
    cls: Vec<(u64, usize)>,
}
fn seg(b: &[u8], base: usize, l: usize) -> Seg {
    let mut s = Seg::default();
    let mut p = base;
    let e = base + l;
    while p < e {
        let st = p;
        let t = b[p];
        p += 1;
        match t {
            0xff => {
                s.roots.push(u8_(b, p));
                p += 8
            }
            0x01 => {
                s.roots.push(u8_(b, p));
                p += 16
            }
            0x02 | 0x03 => {
                s.roots.push(u8_(b, p));
                p += 16
            }
            0x04 | 0x06 => {
                s.roots.push(u8_(b, p));
                p += 12
            }
            0x05 | 0x07 => {
                s.roots.push(u8_(b, p));
                p += 8
            }
            0x08 => {
                s.roots.push(u8_(b, p));
                p += 16
            }
            0x20 => {
                s.cls.push((u8_(b, p), p));
                s.ids.push(u8_(b, p));
                s.off.push(st as u64);
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
            }
            0x21 => {
                s.ids.push(u8_(b, p));
                s.off.push(st as u64);
                let l = u4(b, p + 20) as usize;
                p += 24 + l;
            }
            0x22 => {
                s.ids.push(u8_(b, p));
                s.off.push(st as u64);
                let k = u4(b, p + 12) as usize;
                p += 24 + 8 * k;
            }
            0x23 => {
                s.ids.push(u8_(b, p));
                s.off.push(st as u64);
                let k = u4(b, p + 12) as usize;
                let ty = b[p + 16] as usize;
                p += 17 + k * SZ[ty];
            }
            x => panic!("tag {x:#x}"),
        }
    }
    s
}
struct Addr {
    min: u64,
    words: Vec<u64>,
    rank: Vec<u32>,
}
impl Addr {
    #[inline]
    fn get(&self, a: u64) -> Option<u32> {
        if a < self.min {
            return None;
        }
        let i = (a - self.min) >> 3;
        let w = (i >> 6) as usize;
        if w >= self.words.len() {
            return None;
        }
        let x = self.words[w];
        let bit = 1u64 << (i & 63);
        if x & bit == 0 {
            return None;
        }
        let sb = w >> 3;
        let mut r = self.rank[sb];
        for k in (sb << 3)..w {
            r += self.words[k].count_ones();
        }
        Some(r + (x & (bit - 1)).count_ones())
    }
}
fn main() {
    let f = std::fs::File::open(std::env::args().nth(1).unwrap()).unwrap();
    let t0 = Instant::now();
    let t = |s: &str| eprintln!("{:>8.3}s {}", t0.elapsed().as_secs_f64(), s);
    let m = unsafe { memmap2::Mmap::map(&f).unwrap() };
    let b = &m[..];
    let mut p = b.iter().position(|&x| x == 0).unwrap() + 1 + 12;
    let mut segs = vec![];
    while p + 9 <= b.len() {
        let tg = b[p];
        let l = u4(b, p + 5) as usize;
        if tg == 0x1c || tg == 0x0c {
            segs.push((p + 9, l));
        }
        p += 9 + l;
    }
    let mut r: Vec<Seg> = segs.par_iter().map(|&(o, l)| seg(b, o, l)).collect();
    t("scan");
    let n: usize = r.iter().map(|x| x.ids.len()).sum();
    let min = r.iter().flat_map(|x| x.ids.iter().copied()).min().unwrap();
    let max = r.iter().flat_map(|x| x.ids.iter().copied()).max().unwrap();
    let nw = (((max - min) >> 3) >> 6) as usize + 1;
    let nw = (nw + 7) & !7;
    let aw: Vec<AtomicU64> = (0..nw).map(|_| AtomicU64::new(0)).collect();
    r.par_iter().for_each(|s| {
        for &a in &s.ids {
            let i = (a - min) >> 3;
            aw[(i >> 6) as usize].fetch_or(1 << (i & 63), Ordering::Relaxed);
        }
    });
    let words: Vec<u64> = aw.into_iter().map(|x| x.into_inner()).collect();
    let mut rank = Vec::with_capacity(nw / 8 + 1);
    let mut c = 0u32;
    for ch in words.chunks(8) {
        rank.push(c);
        for w in ch {
            c += w.count_ones();
        }
    }
    assert_eq!(c as usize, n, "dups");
    let ad = Addr { min, words, rank };
    t("bitmap+rank");
    let mut off = vec![0u64; n];
    let op = SyncPtr(off.as_mut_ptr());
    r.par_iter().for_each(|s| {
        let op = &op;
        for (a, o) in s.ids.iter().zip(&s.off) {
            let k = ad.get(*a).unwrap();
            unsafe {
                *op.0.add(k as usize) = *o;
            }
        }
    });
    t("offsets");
    // classes
    let mut cpos: HashMap<u64, usize> = HashMap::new();
    for s in &r {
        for &(id, p) in &s.cls {
            cpos.insert(id, p);
        }
    }
    struct Cl {
        sup: u64,
        own: Vec<usize>,
        size: usize,
        stat: Vec<u64>,
        hdr: Vec<u64>,
    }
    let mut cl: HashMap<u64, Cl> = HashMap::new();
    for (&id, &p0) in &cpos {
        let mut p = p0 + 12;
        let sup = u8_(b, p);
        let hdr = vec![sup, u8_(b, p + 8), u8_(b, p + 16), u8_(b, p + 24)];
        p += 8 * 6 + 4;
        let c = u2(b, p);
        p += 2;
        for _ in 0..c {
            let ty = b[p + 2] as usize;
            p += 3 + SZ[ty];
        }
        let c = u2(b, p);
        p += 2;
        let mut stat = vec![];
        for _ in 0..c {
            let ty = b[p + 8] as usize;
            if ty == 2 {
                stat.push(u8_(b, p + 9));
            }
            p += 9 + SZ[ty];
        }
        let c = u2(b, p);
        p += 2;
        let mut own = vec![];
        let mut o = 0;
        for _ in 0..c {
            let ty = b[p + 8] as usize;
            if ty == 2 {
                own.push(o);
            }
            o += SZ[ty];
            p += 9;
        }
        cl.insert(
            id,
            Cl {
                sup,
                own,
                size: o,
                stat,
                hdr,
            },
        );
    }
    let mut full: HashMap<u64, (Vec<u32>, u32)> = HashMap::new();
    for (&id, _) in &cl {
        let mut v = vec![];
        let mut o = 0;
        let mut c = id;
        while let Some(k) = cl.get(&c) {
            for x in &k.own {
                v.push((o + x) as u32);
            }
            o += k.size;
            c = k.sup;
        }
        let ord = ad.get(id).unwrap();
        full.insert(id, (v, ord));
    }
    let mut roots: Vec<u32> = r
        .iter()
        .flat_map(|s| s.roots.iter().filter_map(|&x| ad.get(x)))
        .collect();
    roots.sort();
    roots.dedup();
    r.clear();
    t(&format!("classes {} roots {}", cl.len(), roots.len()));
    // edges
    let each = |k: usize, f: &mut dyn FnMut(u32)| {
        let p = off[k] as usize;
        match b[p] {
            0x20 => {
                let id = u8_(b, p + 1);
                let c = &cl[&id];
                for &x in c.hdr.iter().chain(&c.stat) {
                    if x != 0 {
                        if let Some(j) = ad.get(x) {
                            f(j)
                        }
                    }
                }
            }
            0x21 => {
                let c = u8_(b, p + 13);
                let (v, o) = &full[&c];
                f(*o);
                let q = p + 25;
                for &x in v {
                    let a = u8_(b, q + x as usize);
                    if a != 0 {
                        if let Some(j) = ad.get(a) {
                            f(j)
                        }
                    }
                }
            }
            0x22 => {
                let k = u4(b, p + 13) as usize;
                let c = u8_(b, p + 17);
                if let Some(j) = ad.get(c) {
                    f(j)
                }
                for i in 0..k {
                    let a = u8_(b, p + 25 + 8 * i);
                    if a != 0 {
                        if let Some(j) = ad.get(a) {
                            f(j)
                        }
                    }
                }
            }
            _ => {}
        }
    };
    const CH: usize = 1 << 16;
    let nch = n.div_ceil(CH);
    let parts: Vec<(Vec<u32>, Vec<u32>)> = (0..nch)
        .into_par_iter()
        .map(|ci| {
            let mut d = Vec::new();
            let mut e = Vec::new();
            for k in ci * CH..((ci + 1) * CH).min(n) {
                let s = e.len();
                each(k, &mut |j| e.push(j));
                d.push((e.len() - s) as u32);
            }
            (d, e)
        })
        .collect();
    let ne: usize = parts.iter().map(|x| x.1.len()).sum();
    let mut st: Vec<u32> = Vec::with_capacity(n + 1);
    let mut adj: Vec<u32> = Vec::with_capacity(ne);
    let mut s = 0u32;
    for (d, e) in parts {
        for x in d {
            st.push(s);
            s += x;
        }
        adj.extend_from_slice(&e);
    }
    st.push(s);
    t(&format!("edges {ne} objects {n}"));

    // --- experiment 2 ---
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Nd {
        st: u32,
        len: u32,
        pre: u32,
        _p: u32,
    }
    let mut nd: Vec<Nd> = (0..n)
        .into_par_iter()
        .map(|k| Nd {
            st: st[k],
            len: st[k + 1] - st[k],
            pre: 0,
            _p: 0,
        })
        .collect();
    drop(st);
    t("nodes");
    #[inline(always)]
    fn pf<T>(p: *const T) {
        unsafe { std::arch::x86_64::_mm_prefetch(p as *const i8, std::arch::x86_64::_MM_HINT_T0) }
    }
    let mut vert: Vec<u32> = Vec::with_capacity(n + 1);
    vert.push(u32::MAX);
    let mut par: Vec<u32> = Vec::with_capacity(n + 1);
    par.push(0);
    let mut stack: Vec<(u32, u32)> = Vec::with_capacity(1 << 20);
    for &rt in roots.iter().rev() {
        stack.push((rt, 0));
    }
    let ndp = nd.as_mut_ptr();
    while let Some((v, p)) = stack.pop() {
        let x = unsafe { &mut *ndp.add(v as usize) };
        if x.pre != 0 {
            continue;
        }
        let k = vert.len() as u32;
        x.pre = k;
        vert.push(v);
        par.push(p);
        let row = &adj[x.st as usize..(x.st + x.len) as usize];
        if row.len() <= 16 {
            for &w in row {
                pf(unsafe { ndp.add(w as usize) });
            }
        }
        if let Some(&(nx, _)) = stack.last() {
            pf(unsafe { ndp.add(nx as usize) });
        }
        for &w in row.iter().rev() {
            let y = unsafe { &*ndp.add(w as usize) };
            if y.pre == 0 {
                pf(adj.as_ptr().wrapping_add(y.st as usize));
                stack.push((w, k));
            }
        }
    }
    let rn = vert.len();
    t(&format!("dfs reached {}", rn - 1));
    // relabelled edges, partitioned by target bucket, two threads
    const SH: u32 = 16;
    let nb = (rn >> SH) + 1;
    let isroot = {
        let mut b = vec![false; rn];
        for &r in &roots {
            b[nd[r as usize].pre as usize] = true;
        }
        b
    };
    let nt = 2usize;
    let chunk = (rn + nt * 8 - 1) / (nt * 8);
    let parts: Vec<Vec<Vec<(u32, u32)>>> = (0..nt * 8)
        .into_par_iter()
        .map(|c| {
            let mut o: Vec<Vec<(u32, u32)>> = vec![Vec::new(); nb];
            for k in (c * chunk).max(1)..((c + 1) * chunk).min(rn) {
                if k + 16 < rn {
                    pf(unsafe { nd.as_ptr().add(vert[k + 16] as usize) });
                }
                if k + 8 < rn {
                    let y = nd[vert[k + 8] as usize];
                    pf(adj.as_ptr().wrapping_add(y.st as usize));
                }
                if k + 4 < rn {
                    let y = nd[vert[k + 4] as usize];
                    for &w in adj[y.st as usize..(y.st + y.len.min(4)) as usize].iter() {
                        pf(unsafe { nd.as_ptr().add(w as usize) });
                    }
                }
                let x = nd[vert[k] as usize];
                for &w in &adj[x.st as usize..(x.st + x.len) as usize] {
                    let q = nd[w as usize].pre;
                    if isroot[q as usize] || par[q as usize] == k as u32 {
                        continue;
                    }
                    o[(q >> SH) as usize].push((q, k as u32));
                }
            }
            o
        })
        .collect();
    t("partition");
    drop(adj);
    let nd_drop = nd;
    drop(nd_drop);
    let buckets: Vec<(Vec<u32>, Vec<u32>)> = (0..nb)
        .into_par_iter()
        .map(|b| {
            let mut c = vec![0u32; (1 << SH) + 1];
            for p in &parts {
                for &(q, _) in &p[b] {
                    c[(q & ((1 << SH) - 1)) as usize + 1] += 1;
                }
            }
            for i in 0..1 << SH {
                c[i + 1] += c[i];
            }
            let mut pr = vec![0u32; c[1 << SH] as usize];
            let mut pos = c.clone();
            for p in &parts {
                for &(q, k) in &p[b] {
                    let i = (q & ((1 << SH) - 1)) as usize;
                    pr[pos[i] as usize] = k;
                    pos[i] += 1;
                }
            }
            (c, pr)
        })
        .collect();
    drop(parts);
    t("preds");
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct S {
        anc: u32,
        label: u32,
        semi: u32,
        par: u32,
    }
    let mut a: Vec<S> = (0..rn as u32)
        .map(|k| S {
            anc: par[k as usize],
            label: k,
            semi: k,
            par: par[k as usize],
        })
        .collect();
    let ap = a.as_mut_ptr();
    macro_rules! A {
        ($i:expr) => {
            unsafe { &mut *ap.add($i as usize) }
        };
    }
    let mut idom = par;
    let mut path: Vec<u32> = Vec::new();
    // labelsemi kept in .semi of label: store value of semi[label] in place (label holds min semi value directly)
    for k in 0..rn {
        A!(k).label = k as u32;
    }
    for w in (1..rn).rev() {
        let mut sm = A!(w).par;
        if isroot[w] {
            sm = 0;
        } else {
            let (c, pr) = &buckets[w >> SH];
            let i = w & ((1 << SH) - 1);
            if w > 12 {
                let z = w - 12;
                let (c2, p2) = &buckets[z >> SH];
                let i2 = z & ((1 << SH) - 1);
                for &v in &p2[c2[i2] as usize..(c2[i2 + 1] as usize).min(c2[i2] as usize + 4)] {
                    if v as usize > z {
                        pf(unsafe { ap.add(v as usize) });
                    }
                }
            }
            for &v in &pr[c[i] as usize..c[i + 1] as usize] {
                let u = if (v as usize) <= w {
                    v
                } else {
                    let last = w as u32 + 1;
                    let mut x = v;
                    path.clear();
                    while A!(x).anc >= last {
                        path.push(x);
                        x = A!(x).anc;
                    }
                    let mut m = A!(x).label;
                    let ra = A!(x).anc;
                    while let Some(y) = path.pop() {
                        let yy = A!(y);
                        if m < yy.label {
                            yy.label = m;
                        } else {
                            m = yy.label;
                        }
                        yy.anc = ra;
                    }
                    m
                };
                if u < sm {
                    sm = u;
                }
            }
        }
        A!(w).semi = sm;
        A!(w).label = sm;
    }
    t("semi");
    for w in 1..rn {
        let mut d = idom[w];
        let s = A!(w).semi;
        while d > s {
            d = idom[d as usize];
        }
        idom[w] = d;
    }
    t("idom");
    let mut cnt = vec![1u32; rn];
    for w in (1..rn).rev() {
        let c = cnt[w];
        cnt[idom[w] as usize] += c;
    }
    let kids = idom[1..].iter().filter(|&&x| x == 0).count();
    let mut top: Vec<u32> = (1..rn as u32).filter(|&k| idom[k as usize] == 0).collect();
    top.sort_by_key(|&k| std::cmp::Reverse(cnt[k as usize]));
    t(&format!(
        "retained; top children {} {:?}",
        kids,
        &top[..5].iter().map(|&k| cnt[k as usize]).collect::<Vec<_>>()
    ));
    let s = std::fs::read_to_string("/proc/self/status").unwrap();
    for l in s.lines() {
        if l.starts_with("VmHWM") || l.starts_with("RssAnon") {
            eprintln!("{l}");
        }
    }
}
struct SyncPtr(*mut u64);
unsafe impl Sync for SyncPtr {}
unsafe impl Send for SyncPtr {}
