//! Values as bytes and back, without loss: what no transfer mode has to keep,
//! such as the width of a number and what is private, stays as it was.

use std::sync::Arc;

use milieu_transfer::{Map, Span, Time, Value};

/// Values lie at most so deep in each other: as deep as bodies may be, and as
/// much again for what operators put around them.
const DEPTH_MAX: usize = 256;

/// Appends a value. Nothing if it lies too deep to be read again; what was
/// appended is then of no use.
#[must_use]
pub(super) fn write(value: &Value, out: &mut Vec<u8>) -> Option<()> {
    put(value, out, 0)
}

fn put(value: &Value, out: &mut Vec<u8>, depth: usize) -> Option<()> {
    if depth == DEPTH_MAX {
        return None;
    }
    let number = |tag: u8, bytes: [u8; 8], out: &mut Vec<u8>| {
        out.push(tag);
        out.extend(bytes);
    };
    match value {
        Value::Null => out.push(0),
        Value::Bool(value) => out.push(1 + u8::from(*value)),
        Value::Int(value) => number(3, value.to_le_bytes(), out),
        Value::Uint(value) => number(4, value.to_le_bytes(), out),
        Value::Double(value) => number(5, value.to_le_bytes(), out),
        Value::Time(value) => number(6, value.nanoseconds().to_le_bytes(), out),
        Value::Span(value) => number(7, value.nanoseconds().to_le_bytes(), out),
        Value::Text(text) => bytes(8, text.as_bytes(), out),
        Value::Bytes(content) => bytes(9, content, out),
        Value::List(items) => {
            number(10, (items.len() as u64).to_le_bytes(), out);
            items
                .iter()
                .try_for_each(|item| put(item, out, depth + 1))?;
        }
        Value::Map(map) => {
            number(11, (map.len() as u64).to_le_bytes(), out);
            for (key, value) in map.iter() {
                put(key, out, depth + 1)?;
                put(value, out, depth + 1)?;
            }
        }
        Value::Private(value) => {
            out.push(12);
            put(value, out, depth + 1)?;
        }
        Value::Shared(id, value) => {
            number(13, u64::from(*id).to_le_bytes(), out);
            put(value, out, depth + 1)?;
        }
        Value::Link(id) => number(14, u64::from(*id).to_le_bytes(), out),
    }
    Some(())
}

fn bytes(tag: u8, content: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend((content.len() as u64).to_le_bytes());
    out.extend(content);
}

/// Reads the value that these bytes are. Nothing if they are none.
pub(super) fn read(bytes: &[u8]) -> Option<Value> {
    let mut rest = bytes;
    let value = take(&mut rest, 0)?;
    rest.is_empty().then_some(value)
}

fn take(rest: &mut &[u8], depth: usize) -> Option<Value> {
    if depth == DEPTH_MAX {
        return None;
    }
    Some(match part(rest, 1)?[0] {
        0 => Value::Null,
        1 => Value::Bool(false),
        2 => Value::Bool(true),
        3 => Value::Int(i64::from_le_bytes(eight(rest)?)),
        4 => Value::Uint(u64::from_le_bytes(eight(rest)?)),
        5 => Value::Double(f64::from_le_bytes(eight(rest)?)),
        6 => Value::Time(Time::from_nanoseconds(i64::from_le_bytes(eight(rest)?))),
        7 => Value::Span(Span::from_nanoseconds(i64::from_le_bytes(eight(rest)?))),
        8 => {
            let length = count(rest)?;
            Value::Text(std::str::from_utf8(part(rest, length)?).ok()?.into())
        }
        9 => {
            let length = count(rest)?;
            Value::Bytes(part(rest, length)?.into())
        }
        10 => {
            // Each takes a byte at least, so that no count makes room for more.
            let items = (0..count(rest)?).map(|_| take(rest, depth + 1));
            items.collect::<Option<Vec<Value>>>()?.into()
        }
        11 => {
            let entries = (0..count(rest)?).map(|_| {
                let key = take(rest, depth + 1)?;
                Some((key, take(rest, depth + 1)?))
            });
            let entries: Vec<_> = entries.collect::<Option<_>>()?;
            Value::Map(Arc::new(Map::new(entries).ok()?))
        }
        12 => Value::Private(Arc::new(take(rest, depth + 1)?)),
        13 => {
            let id = u32::try_from(u64::from_le_bytes(eight(rest)?)).ok()?;
            Value::Shared(id, Arc::new(take(rest, depth + 1)?))
        }
        14 => Value::Link(u32::try_from(u64::from_le_bytes(eight(rest)?)).ok()?),
        _ => return None,
    })
}

fn part<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (part, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(part)
}

fn eight(rest: &mut &[u8]) -> Option<[u8; 8]> {
    part(rest, 8)?.try_into().ok()
}

/// A number of things of a byte or more each, which are all there.
fn count(rest: &mut &[u8]) -> Option<usize> {
    let count = usize::try_from(u64::from_le_bytes(eight(rest)?)).ok()?;
    (count <= rest.len()).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_were_and_nothing_else_does() {
        let entries = vec![("a".into(), Value::Uint(3)), (Value::Int(-1), Value::Null)];
        let all: Value = vec![
            Value::Bool(true),
            Value::Uint(u64::MAX),
            Value::Double(-0.0),
            Value::Time(Time::MAX),
            Value::Span(Span::from_nanoseconds(-1)),
            Value::Bytes([0, 255].as_slice().into()),
            Value::Map(Arc::new(Map::new(entries).expect("two keys"))),
            Value::Private(Arc::new("é".into())),
            Value::Shared(1, Arc::new(Value::Link(1))),
        ]
        .into();
        let mut bytes = Vec::new();
        assert_eq!(write(&all, &mut bytes), Some(()));
        assert_eq!(read(&bytes), Some(all));
        for length in 0..bytes.len() {
            assert_eq!(read(&bytes[..length]), None);
        }
        bytes.push(0);
        assert_eq!(read(&bytes), None);
        assert_eq!(read(&[12; 4096]), None, "it lies too deep");
        let nested = |depth| (1..depth).fold(Value::Null, |value, _| vec![value].into());
        let mut bytes = Vec::new();
        assert_eq!(write(&nested(DEPTH_MAX), &mut bytes), Some(()));
        assert_eq!(read(&bytes), Some(nested(DEPTH_MAX)));
        assert_eq!(write(&nested(DEPTH_MAX + 1), &mut Vec::new()), None);
        let endless = [&[10][..], &[255; 8]].concat();
        assert_eq!(read(&endless), None);
    }
}
