//! Joining the tables of an environment's parts, while the program is compiled.

use proc_macro2::TokenStream;
use quote::quote;

/// The functions that do it: descriptors are moved by the part's offset,
/// patterns get the part's prefix.
pub(super) fn functions(crate_path: &TokenStream) -> TokenStream {
    quote! {
        use #crate_path::context::{Descriptor, Kind};
        type Piece = (usize, &'static str, &'static [Descriptor]);

        const fn count(pieces: &[Piece]) -> usize {
            let (mut count, mut at) = (0, 0);
            while at < pieces.len() {
                count += pieces[at].2.len();
                at += 1;
            }
            count
        }

        /// The length of a pattern below a prefix. The root adds nothing to it.
        const fn length(prefix: &str, pattern: &str) -> usize {
            if pattern.len() == 1 && !prefix.is_empty() {
                prefix.len()
            } else {
                prefix.len() + pattern.len()
            }
        }

        const fn bytes(pieces: &[Piece]) -> usize {
            let (mut bytes, mut at) = (0, 0);
            while at < pieces.len() {
                let (_, prefix, descriptors) = pieces[at];
                let mut index = 0;
                while index < descriptors.len() {
                    bytes += length(prefix, descriptors[index].pattern);
                    index += 1;
                }
                at += 1;
            }
            bytes
        }

        const fn texts<const N: usize>(pieces: &[Piece]) -> [u8; N] {
            let mut texts = [0; N];
            let (mut end, mut at) = (0, 0);
            while at < pieces.len() {
                let (_, prefix, descriptors) = pieces[at];
                let mut index = 0;
                while index < descriptors.len() {
                    let pattern = descriptors[index].pattern.as_bytes();
                    let whole = length(prefix, descriptors[index].pattern);
                    let mut byte = 0;
                    while byte < whole {
                        texts[end + byte] = if byte < prefix.len() {
                            prefix.as_bytes()[byte]
                        } else {
                            pattern[byte - prefix.len()]
                        };
                        byte += 1;
                    }
                    end += whole;
                    index += 1;
                }
                at += 1;
            }
            texts
        }

        const fn join<const N: usize>(pieces: &[Piece], mut texts: &'static [u8]) -> [Descriptor; N] {
            let nothing = Descriptor { pattern: "", offset: 0, kind: Kind::Bool, metadata: &[] };
            let mut all = [nothing; N];
            let (mut end, mut at) = (0, 0);
            while at < pieces.len() {
                let (offset, prefix, descriptors) = pieces[at];
                let mut index = 0;
                while index < descriptors.len() {
                    let descriptor = &descriptors[index];
                    let (text, rest) = texts.split_at(length(prefix, descriptor.pattern));
                    texts = rest;
                    all[end] = Descriptor {
                        pattern: match ::core::str::from_utf8(text) {
                            Ok(pattern) => pattern,
                            Err(_) => panic!("two texts joined are a text"),
                        },
                        offset: offset + descriptor.offset,
                        kind: descriptor.kind,
                        metadata: descriptor.metadata,
                    };
                    end += 1;
                    index += 1;
                }
                at += 1;
            }
            all
        }

        const fn distinct(all: &[Descriptor]) {
            let mut one = 0;
            while one < all.len() {
                let mut other = 0;
                while other < one {
                    assert!(
                        !equal(all[one].pattern.as_bytes(), all[other].pattern.as_bytes()),
                        "two fields have one key; give one of the parts a prefix: `#[part(\"/name\")]`"
                    );
                    other += 1;
                }
                one += 1;
            }
        }

        const fn equal(one: &[u8], other: &[u8]) -> bool {
            if one.len() != other.len() {
                return false;
            }
            let mut at = 0;
            while at < one.len() {
                if one[at] != other[at] {
                    return false;
                }
                at += 1;
            }
            true
        }
    }
}
