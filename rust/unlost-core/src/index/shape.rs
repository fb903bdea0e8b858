//! The structure of the JSON objects of neighbouring rows: nearly always the same members in the same order.
//!
//! A known structure makes parsing faster: the text between two values must equal that of earlier rows, otherwise the
//! row is parsed in full.

/// How often the structure is learned. If rows of two structures alternate, learning costs more than it saves.
const MAX_TIMES_LEARNED: usize = 8;

/// A member of the objects: the text between the previous value and its own, and its slot if it is read.
#[derive(Debug, Clone)]
struct Member<S> {
    lead: Vec<u8>,
    slot: Option<S>,
}

/// The structure of objects whose values are all strings without escapes.
#[derive(Debug, Clone)]
pub(super) struct ObjectShape<S> {
    members: Vec<Member<S>>,
    times_learned: usize,
}

impl<S> Default for ObjectShape<S> {
    fn default() -> Self {
        Self {
            members: Vec::new(),
            times_learned: 0,
        }
    }
}

impl<S: Copy> ObjectShape<S> {
    /// Calls `visit` with the values of the slots in order. Returns whether the object has this structure; if not,
    /// earlier calls are void.
    pub(super) fn visit<'a>(&self, object: &'a [u8], mut visit: impl FnMut(S, &'a [u8])) -> bool {
        let mut rest = object;
        for member in &self.members {
            let Some(after) = rest.strip_prefix(member.lead.as_slice()) else {
                return false;
            };
            let Some(end) = memchr::memchr2(b'"', b'\\', after) else {
                return false;
            };
            if after[end] == b'\\' {
                return false;
            }
            if let Some(slot) = member.slot {
                visit(slot, &after[..end]);
            }
            rest = &after[end..];
        }
        rest == b"\"}"
    }

    /// Learns the structure of an object, if it qualifies. `slot_of` returns the slot of a member name.
    pub(super) fn learn(&mut self, object: &[u8], slot_of: impl Fn(&[u8]) -> Option<S>) {
        if self.times_learned < MAX_TIMES_LEARNED {
            self.times_learned += 1;
            self.members = members_of(object, slot_of).unwrap_or_default();
        }
    }
}

/// The members of an object whose values are all strings without escapes, with nothing after it.
fn members_of<S>(object: &[u8], slot_of: impl Fn(&[u8]) -> Option<S>) -> Option<Vec<Member<S>>> {
    if object.contains(&b'\\') {
        return None;
    }
    let quotes: Vec<usize> = memchr::memchr_iter(b'"', object).collect();
    let mut members = Vec::new();
    let mut end = 0;
    for quotes in quotes.chunks(4) {
        let &[name, name_end, value, value_end] = quotes else {
            return None;
        };
        let (before, sign): (_, &[u8]) = match end {
            0 => (&object[..name], b"{"),
            _ => (&object[end + 1..name], b","),
        };
        let colon = object[name_end + 1..value].trim_ascii();
        if before.trim_ascii() != sign || colon != b":" {
            return None;
        }
        members.push(Member {
            lead: object[end..=value].to_vec(),
            slot: slot_of(&object[name + 1..name_end]),
        });
        end = value_end;
    }
    (object[end..] == *b"\"}").then_some(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(shape: &ObjectShape<u8>, object: &str) -> Option<Vec<(u8, String)>> {
        let mut slots = Vec::new();
        let is_read = shape.visit(object.as_bytes(), |slot, value| {
            slots.push((slot, String::from_utf8_lossy(value).into_owned()));
        });
        is_read.then_some(slots)
    }

    fn slot_of(name: &[u8]) -> Option<u8> {
        matches!(name, b"u" | b"m").then(|| name[0])
    }

    #[test]
    fn objects_of_other_shapes_are_rejected() {
        let mut shape = ObjectShape::default();
        assert_eq!(values(&shape, "{}"), None);
        shape.learn(br#"{"u": "1", "x": "2", "m":"3"}"#, slot_of);
        let slots = values(&shape, r#"{"u": "http://a/", "x": "", "m":"t"}"#);
        let expected = vec![(b'u', "http://a/".to_owned()), (b'm', "t".to_owned())];
        assert_eq!(slots, Some(expected));
        for other in [
            r#"{"u": "1", "x": "2"}"#,
            r#"{"u": "1", "x": "2", "m":"3", "u": "4"}"#,
            r#"{"u": "1\"", "x": "2", "m":"3"}"#,
            r#"{"u": "1", "x": "2", "m":"3""#,
            r#"{"u": "1", "x": "2", "m":"3"} "#,
            r#"{"u": "1", "x": "2", "m":3}"#,
            "",
        ] {
            assert_eq!(values(&shape, other), None, "{other}");
        }
    }

    #[test]
    fn only_plain_objects_are_learned_and_a_bounded_number_of_times() {
        for invalid in [
            r"{}",
            r#"{"u": 1}"#,
            r#"{"u": "a\/b"}"#,
            r#"{"u": ["a"]}"#,
            r#"{"u": "a"}}"#,
            r#"{"u" "a"}"#,
            r#"["u": "a"}"#,
            r#"{"u": "a" "m": "b"}"#,
        ] {
            let mut shape = ObjectShape::default();
            shape.learn(invalid.as_bytes(), slot_of);
            assert!(shape.members.is_empty(), "{invalid}");
        }
        let mut shape = ObjectShape::default();
        for _ in 0..MAX_TIMES_LEARNED {
            shape.learn(br#"{"u": "1"}"#, slot_of);
        }
        shape.learn(br#"{"m": "1"}"#, slot_of);
        assert_eq!(values(&shape, r#"{"m": "1"}"#), None);
    }
}
