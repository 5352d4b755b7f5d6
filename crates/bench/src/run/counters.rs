//! What the kernel counts for a control group: packets, and switches of the processor.
//!
//! Two small programs in the kernel (BPF) see every packet that a socket of the
//! group sends or receives, whatever interface it takes, and add it up. A packet
//! that is cut into segments only by the network card, or was put together of
//! several, counts as what is on the wire: as many packets, each with its headers
//! of IP and TCP or UDP. A datagram that IP cuts into fragments counts as one.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::kernel::{self, Direction, Sums};

/// What an application sent and received, with the headers of IP and above, on
/// all interfaces, the loopback included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Network {
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
}

/// Counts the packets of a control group.
pub(super) struct Packets {
    sums: Sums,
    _programs: [OwnedFd; 2],
}

impl Packets {
    /// Counts from now on.
    pub fn of(group: &Path) -> io::Result<Packets> {
        let group = File::open(group)?;
        let sums = Sums::new()?;
        let counts = |direction| {
            let program = kernel::load(&program(&sums, direction))?;
            kernel::attach(group.as_fd(), &program, direction)?;
            Ok::<_, io::Error>(program)
        };
        let programs = [counts(Direction::Received)?, counts(Direction::Sent)?];
        Ok(Packets {
            sums,
            _programs: programs,
        })
    }

    /// What has been counted when all processes have ended. The kernel goes on to
    /// send what they have written; it is waited for as long as it comes without a
    /// pause, for a moment.
    pub fn settled(&self) -> io::Result<Network> {
        const PAUSE: Duration = Duration::from_millis(5);
        const PAUSES_MAX: u32 = 100;
        let mut before = self.read()?;
        for _ in 0..PAUSES_MAX {
            if before == Network::default() {
                break;
            }
            thread::sleep(PAUSE);
            let after = self.read()?;
            if after == before {
                break;
            }
            before = after;
        }
        Ok(before)
    }

    fn read(&self) -> io::Result<Network> {
        let [sent_bytes, sent_packets] = self.sums.read(Direction::Sent)?;
        let [received_bytes, received_packets] = self.sums.read(Direction::Received)?;
        Ok(Network {
            sent_bytes,
            sent_packets,
            received_bytes,
            received_packets,
        })
    }
}

/// Counts how often processors switched away from the processes of a group.
pub(super) struct Switches(Vec<File>);

impl Switches {
    /// Counts from now on.
    pub fn of(group: &Path) -> io::Result<Switches> {
        let group = File::open(group)?;
        let online = fs::read_to_string("/sys/devices/system/cpu/online")?;
        let counters = processors(&online)
            .into_iter()
            .map(|processor| kernel::switches(&group, processor).map(File::from));
        counters.collect::<Result<_, _>>().map(Switches)
    }

    pub fn read(&mut self) -> io::Result<u64> {
        let mut sum = 0;
        for counter in &mut self.0 {
            let mut count = [0; 8];
            counter.read_exact(&mut count)?;
            sum += u64::from_ne_bytes(count);
        }
        Ok(sum)
    }
}

/// The numbers in a list of ranges, `0-2,5`.
fn processors(list: &str) -> Vec<u32> {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}

/// The program that adds the packets of one direction to the sums.
fn program(sums: &Sums, direction: Direction) -> Vec<u64> {
    // Registers: 0 is what a call gives, 1 to 4 what it takes, 10 the end of the
    // stack. 6 is the packet, 7 its bytes, 8 its segments, 9 the protocol.
    const STACK: u8 = 10;
    const LENGTH: i16 = 0;
    const SEGMENTS: i16 = 164;
    // Where on the stack the sums' key, the bytes of a header and its length are.
    const KEY: i16 = -4;
    const BYTES: i16 = -16;
    const HEADER: i16 = -24;
    const LOOK_UP: i32 = 1;
    const LOAD_BYTES: i32 = 26;
    const TCP: i32 = 6;
    const UDP: i32 = 17;
    let mut it = Assembler::default();
    it.copy(6, 1);
    it.read32(7, 6, LENGTH);
    it.read32(8, 6, SEGMENTS);
    it.jump(JUMP_ABOVE, 8, 1, "segments");
    it.set(8, 1);
    it.jump(JUMP, 0, 0, "count");

    it.label("segments");
    // The fixed part of the header of IP, up to the protocol.
    it.load_bytes(None, 10, BYTES);
    it.call(LOAD_BYTES);
    it.jump(JUMP_UNLESS, 0, 0, "count");
    it.read8(1, STACK, BYTES);
    it.copy(2, 1);
    it.compute(SHIFT_RIGHT, 2, 4);
    it.jump(JUMP_IF, 2, 6, "ip 6");
    it.compute(AND, 1, 15);
    it.compute(SHIFT_LEFT, 1, 2);
    it.read8(9, STACK, BYTES + 9);
    it.jump(JUMP, 0, 0, "transport");
    it.label("ip 6");
    it.read8(9, STACK, BYTES + 6);
    it.set(1, 40);

    it.label("transport");
    it.write64(STACK, 1, HEADER);
    it.jump(JUMP_IF, 9, UDP, "udp");
    it.jump(JUMP_UNLESS, 9, TCP, "count");
    // How long the header of TCP is stands in it.
    it.load_bytes(Some((1, 12)), 1, BYTES);
    it.call(LOAD_BYTES);
    it.jump(JUMP_UNLESS, 0, 0, "count");
    it.read8(1, STACK, BYTES);
    it.compute(SHIFT_RIGHT, 1, 4);
    it.compute(SHIFT_LEFT, 1, 2);
    it.jump(JUMP, 0, 0, "headers");
    it.label("udp");
    it.set(1, 8);

    it.label("headers");
    // The packet has them once, and the wire once for each segment.
    it.read64(2, STACK, HEADER);
    it.both(ADD_BOTH, 1, 2);
    it.copy(2, 8);
    it.compute(ADD, 2, -1);
    it.both(MULTIPLY_BOTH, 1, 2);
    it.both(ADD_BOTH, 7, 1);

    it.label("count");
    it.write_number(STACK, KEY, direction as i32);
    it.set_map(1, sums.number());
    it.copy(2, STACK);
    it.compute(ADD, 2, KEY.into());
    it.call(LOOK_UP);
    it.jump(JUMP_IF, 0, 0, "end");
    it.add_to(0, 7, 0);
    it.add_to(0, 8, 8);
    it.label("end");
    // The packet goes on.
    it.set(0, 1);
    it.exit();
    it.assemble()
}

// The kernel's codes, with a number as the second operand, or a register (`BOTH`).
const ADD: u8 = 0x07;
const AND: u8 = 0x57;
const SHIFT_LEFT: u8 = 0x67;
const SHIFT_RIGHT: u8 = 0x77;
const ADD_BOTH: u8 = 0x0f;
const MULTIPLY_BOTH: u8 = 0x2f;
const JUMP: u8 = 0x05;
const JUMP_IF: u8 = 0x15;
const JUMP_ABOVE: u8 = 0x25;
const JUMP_UNLESS: u8 = 0x55;

/// Writes programs for the kernel.
#[derive(Default)]
struct Assembler {
    instructions: Vec<u64>,
    labels: BTreeMap<&'static str, usize>,
    /// Instructions that jump, and where to.
    jumps: Vec<(usize, &'static str)>,
}

impl Assembler {
    fn add(&mut self, code: u8, to: u8, from: u8, offset: i16, number: i32) {
        let registers = u64::from(from << 4 | to);
        let offset = u64::from(u16::from_ne_bytes(offset.to_ne_bytes()));
        let number = u64::from(u32::from_ne_bytes(number.to_ne_bytes()));
        let instruction = u64::from(code) | registers << 8 | offset << 16 | number << 32;
        self.instructions.push(instruction);
    }

    fn copy(&mut self, to: u8, from: u8) {
        self.add(0xbf, to, from, 0, 0);
    }

    fn set(&mut self, to: u8, number: i32) {
        self.add(0xb7, to, 0, 0, number);
    }

    fn set_map(&mut self, to: u8, map: i32) {
        const NUMBER_OF_A_MAP: u8 = 1;
        self.add(0x18, to, NUMBER_OF_A_MAP, 0, map);
        self.instructions.push(0);
    }

    fn compute(&mut self, code: u8, to: u8, number: i32) {
        self.add(code, to, 0, 0, number);
    }

    fn both(&mut self, code: u8, to: u8, from: u8) {
        self.add(code, to, from, 0, 0);
    }

    fn read8(&mut self, to: u8, at: u8, offset: i16) {
        self.add(0x71, to, at, offset, 0);
    }

    fn read32(&mut self, to: u8, at: u8, offset: i16) {
        self.add(0x61, to, at, offset, 0);
    }

    fn read64(&mut self, to: u8, at: u8, offset: i16) {
        self.add(0x79, to, at, offset, 0);
    }

    fn write64(&mut self, at: u8, from: u8, offset: i16) {
        self.add(0x7b, at, from, offset, 0);
    }

    fn write_number(&mut self, at: u8, offset: i16, number: i32) {
        self.add(0x62, at, 0, offset, number);
    }

    /// Adds to a number in memory, whoever else does.
    fn add_to(&mut self, at: u8, from: u8, offset: i16) {
        self.add(0xdb, at, from, offset, 0);
    }

    /// What the call that loads bytes of the packet takes: from where (a register and
    /// a number), how many, and to where on the stack.
    fn load_bytes(&mut self, from: Option<(u8, i32)>, count: i32, to: i16) {
        match from {
            None => self.set(2, 0),
            Some((register, number)) => {
                self.copy(2, register);
                self.compute(ADD, 2, number);
            }
        }
        self.copy(1, 6);
        self.copy(3, 10);
        self.compute(ADD, 3, to.into());
        self.set(4, count);
    }

    fn call(&mut self, function: i32) {
        self.add(0x85, 0, 0, 0, function);
    }

    fn exit(&mut self) {
        self.add(0x95, 0, 0, 0, 0);
    }

    fn label(&mut self, name: &'static str) {
        self.labels.insert(name, self.instructions.len());
    }

    fn jump(&mut self, code: u8, register: u8, number: i32, to: &'static str) {
        self.jumps.push((self.instructions.len(), to));
        self.add(code, register, 0, 0, number);
    }

    fn assemble(mut self) -> Vec<u64> {
        for (from, name) in self.jumps {
            let over = u64::try_from(self.labels[name] - from - 1).expect("jumps go forward");
            self.instructions[from] |= over << 16;
        }
        self.instructions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_listed_in_ranges() {
        assert_eq!(processors("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(processors("3"), [3]);
        assert!(processors("").is_empty());
    }
}
