//! What a decoder accepts.

/// How large and how deep an event may be. A decoder refuses more before it
/// allocates for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest encoding of an event, in bytes.
    pub bytes: usize,
    /// How many lists and maps may lie in each other. Encoders write no more than
    /// 128.
    pub depth: usize,
}

impl Default for Limits {
    /// 16 MiB and 128 levels.
    fn default() -> Limits {
        Limits {
            bytes: 16 << 20,
            depth: 128,
        }
    }
}
