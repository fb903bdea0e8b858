//! Many texts in one allocation, read sequentially.

/// Concatenated texts.
#[derive(Debug, Default)]
pub struct StringArena {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl StringArena {
    /// With capacity for `count` texts of `each` bytes.
    #[must_use]
    pub fn with_room(count: usize, each: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(count * each),
            ends: Vec::with_capacity(count),
        }
    }

    /// Appends one.
    pub fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    /// The number of texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The texts in order.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let text = &self.bytes[start..end];
            start = end;
            text
        })
    }
}

impl<'a> FromIterator<&'a [u8]> for StringArena {
    fn from_iter<T: IntoIterator<Item = &'a [u8]>>(texts: T) -> Self {
        let mut all = Self::default();
        texts.into_iter().for_each(|text| all.push(text));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_round_trip() {
        let texts: [&[u8]; 4] = [b"a", b"", b"bcd", b""];
        let all: StringArena = texts.into_iter().collect();
        assert_eq!(all.len(), 4);
        assert_eq!(all.iter().collect::<Vec<_>>(), texts);
        assert!(StringArena::default().is_empty());
    }
}
