//! Parses, checks, merges and converts any bytes as two profiles: the result is a profile, and never a panic.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use unlost_core::mementomap::{
    HoldingsError, KeyPresence, MapReader, ProfileReader, Progress, check_profile, merge_profiles,
    profiles_to_map,
};
use unlost_core::uri::{ALL_POLICIES, Policy, RuleSet, Section, Suffixes};

const LINE: usize = 400;
/// The output may be longer than the input: its numbers are written out.
const WRITTEN: usize = LINE * 4;

fn opened(text: &[u8], line_limit: usize) -> Result<ProfileReader, HoldingsError> {
    let name = "a profile".to_owned();
    ProfileReader::new(Cursor::new(text.to_vec()), name, line_limit)
}

fn merged(parts: &[&[u8]], line_limit: usize) -> Result<Vec<u8>, HoldingsError> {
    let mut out = Vec::new();
    merge_profiles(
        parts.iter().map(|part| opened(part, line_limit)),
        &mut out,
        &Progress::default(),
    )?;
    Ok(out)
}

fuzz_target!(|data: &[u8]| {
    // The first byte selects the policy; an empty line separates the two profiles.
    let Some((&first, data)) = data.split_first() else {
        return;
    };
    let policy: Policy = ALL_POLICIES[usize::from(first) % ALL_POLICIES.len()]
        .parse()
        .expect("a policy");
    let end = data.windows(2).position(|pair| pair == b"\n\n");
    let (one, other) = data.split_at(end.map_or(data.len(), |end| end + 1));
    let suffixes = Suffixes::built_in(Section::All);
    if let Ok(mut reader) = opened(one, LINE) {
        let _ = check_profile(&mut reader, policy, RuleSet::Wayback, &suffixes);
    }
    let keys = one.split(|&byte| byte == b'\n');
    let mut presence = KeyPresence::new(keys);
    let _ = presence.scan(other);
    assert_eq!(
        presence.seen().count(),
        one.split(|&byte| byte == b'\n').count()
    );
    if let Ok(sum) = merged(&[one, other], LINE) {
        assert_eq!(merged(&[other, one], LINE).ok().as_ref(), Some(&sum));
        // Normalizes the spelling once; then it is unchanged.
        assert_eq!(merged(&[&sum], WRITTEN).ok().as_ref(), Some(&sum));
    }
    let mut map = Vec::new();
    let profiles = [one, other].map(|text| opened(text, LINE).map(|reader| (reader, policy)));
    if profiles_to_map(profiles, 1 << 16, &mut map, &Progress::default()).is_ok() {
        let mut reader = MapReader::new(Cursor::new(map), 1, 1 << 12).expect("it is in memory");
        while reader.next_entry().expect("a map is in order").is_some() {}
    }
});
