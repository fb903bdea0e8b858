use std::fmt::Write;

use super::*;

const SAMPLE: &str = "!context [\"https://git.io/mementomap\"]\n!meta {}\n* 54321/20000\ncom,* 10000+\norg,arxiv)/ 100\n\
org,arxiv)/* 2500~/900\norg,arxiv)/pdf/* 0\nuk,co,bbc)/images/* 300+/20-\n";

fn memory(text: &str, layout: Layout) -> MemoryMap {
    let mut builder = MemoryMapBuilder::new(layout);
    for line in text.split('\n') {
        builder.push(line.as_bytes(), 0).expect("sorted");
    }
    builder.finish()
}

/// The result of both forms: the matched key and its frequency.
fn look_up(text: &str, layout: Layout, key: &str) -> Option<(String, String)> {
    let string = |bytes: Vec<u8>| String::from_utf8(bytes).expect("ascii");
    let mut matched = Vec::new();
    let by_text = TextMap::new(text, layout)
        .seeker(1)
        .expect("not queried often")
        .seek(key.as_bytes(), &mut matched)
        .expect("sorted");
    let mut also_matched = Vec::new();
    let by_memory = memory(text, layout).seek(key.as_bytes(), &mut also_matched);
    assert_eq!((by_text, &matched), (by_memory, &also_matched), "{key}");
    by_text.map(|frequency| {
        let mut written = Vec::new();
        frequency.write(&mut written);
        (string(matched), string(written))
    })
}

fn assert_lookup(text: &str, layout: Layout, key: &str, expected: Option<(&str, &str)>) {
    let found = look_up(text, layout, key);
    let found = found
        .as_ref()
        .map(|(matched, frequency)| (matched.as_str(), frequency.as_str()));
    assert_eq!(found, expected, "{key}");
}

#[test]
fn sample_map_of_the_paper_is_looked_up() {
    for (key, expected) in [
        ("com,example)/", Some(("com,*", "10000+"))),
        ("org,arxiv)/", Some(("org,arxiv)/", "100"))),
        ("org,arxiv)/abs/1", Some(("org,arxiv)/*", "2500~/900"))),
        ("org,arxiv)/pdf/1/2", Some(("org,arxiv)/pdf/*", "0"))),
        // The exclusion of the subtree does not exclude the page itself.
        ("org,arxiv)/pdf", Some(("org,arxiv)/*", "2500~/900"))),
        (
            "uk,co,bbc)/images",
            Some(("uk,co,bbc)/images/*", "300+/20-")),
        ),
        ("uk,co,bbc)/", None),
        ("com)/", Some(("com,*", "10000+"))),
        ("org)/", None),
    ] {
        assert_lookup(SAMPLE, Layout::default(), key, expected);
    }
    let is_rolled_up = Layout {
        is_rolled_up: true,
        ..Layout::default()
    };
    assert_lookup(SAMPLE, is_rolled_up, "de)/", Some(("*", "54321/20000")));
    assert_lookup(SAMPLE, Layout::default(), "*", None);
}

#[test]
fn rows_after_the_total_are_found_in_a_later_lookup() {
    // The total is not a page and is not searched, but pages between it and `*/` are.
    let map = TextMap::new("* 3\n*!a 1\n*,b)/ 2\n", Layout::default());
    let mut seeker = map.seeker(3).expect("not queried often");
    let mut matched = Vec::new();
    for (key, expected) in [("*", false), ("*!a", true), ("*,b)/", true)] {
        let found = seeker.seek(key.as_bytes(), &mut matched).expect("sorted");
        assert_eq!(found.is_some(), expected, "{key}");
    }
}

#[test]
fn rows_of_one_key_are_summed() {
    let layout = Layout {
        frequency: Some(2),
        is_rolled_up: false,
    };
    let text =
        "com,a)/ 2001 0\ncom,a)/ 2002 3/1\n\ncom,a)/ 2003 4/1 {}\ncom,b)/ 2001 x\ncom,c)/ 2001";
    assert_lookup(text, layout, "com,a)/", Some(("com,a)/", "7/2-")));
    assert_lookup(text, layout, "com,b)/", Some(("com,b)/", "/")));
    assert_lookup(text, layout, "com,c)/", Some(("com,c)/", "/")));
    let text = "com,a)/ 999999999999999999\ncom,a)/ 1";
    assert_lookup(text, Layout::default(), "com,a)/", Some(("com,a)/", "/")));
}

#[test]
fn alternative_spellings_are_found() {
    let text = "1.2.3.4)/a 1\n2001:db8::1)/* 2\ncom,a) 3\ncom,b)/x/ 4\r\n";
    for (key, expected) in [
        ("4,3,2,1)/a", Some(("1.2.3.4)/a", "1"))),
        ("[2001:db8::1])/b", Some(("2001:db8::1)/*", "2"))),
        ("com,a)/", Some(("com,a)", "3"))),
        ("com,b)/x", Some(("com,b)/x/", "4"))),
    ] {
        assert_lookup(text, Layout::default(), key, expected);
    }
}

#[test]
fn unsorted_rows_are_reported() {
    let rows: Vec<String> = (0..100).map(|i| format!("com,a{i:02})/ 1\n")).collect();
    let shuffled = [&rows[50..], &rows[..50]].concat().concat();
    let map = TextMap::new(&shuffled, Layout::default());
    let mut reported = 0;
    for row in &rows {
        let key = &row.as_bytes()[..row.len() - 3];
        reported += usize::from(
            map.seeker(1)
                .expect("seldom")
                .seek(key, &mut Vec::new())
                .is_err(),
        );
    }
    assert!(reported > 0);
    let mut builder = MemoryMapBuilder::new(Layout::default());
    builder.push(b"com,b)/ 1", 0).expect("the first");
    assert_eq!(
        builder.push(b"com,a)/ 1", 10),
        Err(NotSorted { offset: 10 })
    );
}

#[test]
fn first_row_identifies_files_that_are_not_maps() {
    for (text, problem) in [
        ("", Some(NotAMap::Empty)),
        ("\n \r\n", Some(NotAMap::Empty)),
        ("!meta {}\n", None),
        ("com,a)/ 20140101000000 {}", Some(NotAMap::Index)),
        (" CDX N b a m s k r M S V g", Some(NotAMap::Index)),
        ("@context []", Some(NotAMap::Profile)),
        ("<html>", Some(NotAMap::Else)),
        ("com,* 1", None),
        ("com,a)", None),
        (
            "!fields {\"keys\":[\"surt\"]}\ncom,a)/ 20140101000000 {}",
            None,
        ),
    ] {
        let end = header_end(text.as_bytes());
        let row = Some(&text.as_bytes()[end..]).filter(|row| !row.is_empty());
        assert_eq!(
            check_first_row(&text.as_bytes()[..end], row).err(),
            problem,
            "{text}"
        );
    }
}

#[test]
fn order_of_queries_does_not_matter() {
    let rows: String = ["%20", "*", "a", "a-b", "a.html", "a/*", "a/b", "b/c/*"]
        .iter()
        .flat_map(|path| [format!("com,a)/{path} 1\n")])
        .collect();
    let text = format!("com,* 1\n{rows}com,a,* 2\ncom,b,c)/ 0\n");
    let map = TextMap::new(&text, Layout::default());
    let keys = [
        "com,a)/",
        "com,a)/%20",
        "com,a)/a",
        "com,a)/a-b/c",
        "com,a)/b",
        "com,a)/b/c/d",
        "com,a,b)/",
        "com,b,c)/",
        "com,!)/",
        "com)/",
        "4,3,2,1)/",
        "4,3,2,x)/",
        "com,a:81)/",
        "com,a!)/",
    ];
    for first in keys {
        for second in keys {
            let mut seeker = map.seeker(1).expect("seldom");
            let (mut matched, mut inline_results) = (Vec::new(), Vec::new());
            seeker
                .seek(first.as_bytes(), &mut Vec::new())
                .expect("sorted");
            let after = seeker
                .seek(second.as_bytes(), &mut matched)
                .expect("sorted");
            let fresh = map
                .seeker(1)
                .expect("not queried often")
                .seek(second.as_bytes(), &mut inline_results)
                .expect("sorted");
            assert_eq!(
                (after, matched),
                (fresh, inline_results),
                "{first}, {second}"
            );
        }
    }
}

#[test]
fn samples_do_not_change_results() {
    let mut rows: Vec<String> = (0..20_000_u32)
        .map(|i| {
            let host = i.wrapping_mul(2_654_435_761) % 3000;
            let tail = ["/", "/*", ",*", "/page", "/a/b/*"][i as usize % 5];
            let close = if tail == ",*" { "" } else { ")" };
            format!("com,shared-by-many-hosts{host}{close}{tail} {}\n", i % 3)
        })
        .collect();
    rows.push("com,* 1\n".to_owned());
    rows.push("com,!)/* 0\n".to_owned());
    rows.sort_by(|a, b| a.split(' ').next().cmp(&b.split(' ').next()));
    let text = rows.concat();
    let map = TextMap::new(&text, Layout::default());
    let memory = memory(&text, Layout::default());
    let mut sequence = map.seeker(1000).expect("sorted");
    for i in 0..5000_u32 {
        let host = i.wrapping_mul(40_503) % 3100;
        let key = format!(
            "com,shared-by-many-hosts{host}{}",
            [")/", ")/page", ")/a/b/c", ",sub)/", ":81)/"][i as usize % 5]
        );
        let expected = {
            let mut matched = Vec::new();
            (memory.seek(key.as_bytes(), &mut matched), matched)
        };
        let mut fresh = map.seeker(1).expect("sorted");
        for seeker in [&mut sequence, &mut fresh] {
            let mut matched = Vec::new();
            let found = seeker.seek(key.as_bytes(), &mut matched).expect("sorted");
            assert_eq!((found, matched), expected, "{key}");
        }
    }
    let middle = rows.len() / 2;
    let shuffled = [&rows[middle..], &rows[..middle]].concat().concat();
    assert!(
        TextMap::new(&shuffled, Layout::default())
            .seeker(1000)
            .is_err()
    );
}

#[test]
fn frequently_queried_map_is_loaded_with_equal_results() {
    let mut text = String::from("!fields {\"keys\":[\"surt\"]}\n");
    for i in 0..3000 {
        writeln!(text, "com,a{i:04})/{} {i}", ["", "b/*", "c"][i % 3]).expect("memory");
    }
    let keys: Vec<String> = (0..6000)
        .map(|i| format!("com,a{:04})/b/{}", i % 3500, i % 2))
        .collect();
    let look_up = |map: &SearchableMap<&str>, keys: &[String]| {
        let groups = with_workers(map, QueryKind::Keys, 2, |mut pool| {
            let mut rest = keys.iter().map(String::as_bytes).peekable();
            while rest.peek().is_some() {
                pool.submit(rest.by_ref().take(pool.block()).collect());
            }
            pool.finish()
        });
        let groups = groups.expect("sorted");
        assert!(
            groups
                .iter()
                .rev()
                .skip(1)
                .all(|group| group.len() == GROUP_SIZE)
        );
        let of_group = |group: &LookupResults| {
            let each = (0..group.len()).map(|i| format!("{:?}", group.get(i)));
            each.collect::<Vec<_>>()
        };
        groups.iter().flat_map(of_group).collect::<Vec<_>>()
    };
    let map = SearchableMap::Text(TextMap::new(text.as_str(), Layout::default()));
    let is_loaded = || matches!(&map, SearchableMap::Text(map) if map.loaded(0).is_some());
    let seldom = look_up(&map, &keys[..500]);
    assert!(!is_loaded());
    let often = look_up(&map, &keys);
    assert!(is_loaded());
    assert_eq!(seldom, often[..500]);
    let in_memory = SearchableMap::Memory(memory(&text, Layout::default()));
    assert_eq!(often, look_up(&in_memory, &keys));

    // An unsorted map is not loaded, and its results do not change.
    let unsorted = text.replace("com,a0001)", "org,a0001)");
    let map = TextMap::new(unsorted.as_str(), Layout::default());
    assert!(map.loaded(1 << 20).is_none());
}
