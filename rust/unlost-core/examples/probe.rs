//! probe
use std::time::Instant;
use unlost_core::holdings::lookup::*;
fn main() {
    let which = std::env::args().nth(1).unwrap();
    let text = std::fs::read("/tmp/lab/wl-probe/ours.ukvs").unwrap();
    let keys = std::fs::read_to_string("/tmp/lab/wl-probe/keys.txt").unwrap();
    let mut q = Questions::default();
    let ks: Vec<&str> = keys.split('\n').collect();
    for k in &ks {
        q.push(k.as_bytes());
    }
    let n = ks.len() as f64;
    let map: Form<Vec<u8>> = if which == "mem" {
        let mut b = MemoryMapBuilder::new(Layout::default());
        for l in text.split(|&b| b == b'\n') {
            b.push(l, 0).unwrap();
        }
        Form::Memory(b.finish())
    } else {
        Form::Text(TextMap::new(text, Layout::default()))
    };
    let cpu = || {
        std::fs::read_to_string("/proc/thread-self/schedstat")
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .parse::<f64>()
            .unwrap()
    };
    let _ = Instant::now();
    let mut best = 1e18f64;
    for _ in 0..15 {
        let t = cpu();
        let a = ask_many(&map, &q, Asked::Keys, 1).unwrap();
        best = best.min((cpu() - t) / n);
        drop(a);
    }
    println!("{which} {best:.0} ns");
}
