//! The network between emulated hosts: a switch, and a link from each host to it.
//!
//! A link has a rate and a delay, in each direction, and a queue in front of it;
//! what finds the queue full is dropped. A link may be down for a while once it
//! has carried so much. There is no clock and no I/O here: frames and the time
//! are handed in.
//!
//! ```text
//! host ─▶ queue ─▶ rate ─▶ delay ─▶ switch ─▶ queue ─▶ rate ─▶ delay ─▶ host
//! ```

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

/// How long a frame may wait for a link before it is dropped.
pub const QUEUE: Duration = Duration::from_millis(50);

/// An Ethernet frame has its addresses first.
const ADDRESS: usize = 6;

/// What is between a host and the switch.
#[derive(Clone, Debug)]
pub struct Link {
    /// How long a bit takes.
    pub delay: Duration,
    /// How many bits a second it carries.
    pub bits_per_second: f64,
    /// When it is down, in this order.
    pub losses: VecDeque<Loss>,
}

/// A while in which a link is down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// It begins when the link has carried so much, both ways together.
    pub after_bytes: u64,
    /// How long it lasts.
    pub lasts: Duration,
}

/// What a link has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes that came from the host.
    pub sent_bytes: u64,
    /// Bytes that the host got.
    pub received_bytes: u64,
    /// Frames that found a queue full.
    pub dropped: u64,
    /// Frames that found the link down.
    pub lost: u64,
}

#[derive(Debug)]
struct Port {
    link: Link,
    /// When each direction has sent all that waits for it.
    up_free: Duration,
    down_free: Duration,
    /// Until when it is down.
    down_until: Option<Duration>,
    counts: Counts,
}

/// A frame on its way, ordered by when it arrives, and then as it came.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flight {
    arrives: Duration,
    number: u64,
    /// The port that it came from, or the one that it goes to.
    leg: Leg,
    frame: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Leg {
    From(usize),
    To(usize),
}

/// Links and the switch in their middle.
#[derive(Debug)]
pub struct Network {
    ports: Vec<Port>,
    /// Behind which port an address is.
    known: HashMap<[u8; ADDRESS], usize>,
    flights: BinaryHeap<Reverse<Flight>>,
    number: u64,
}

impl Network {
    /// A network with a port for each of these links.
    pub fn new(links: impl IntoIterator<Item = Link>) -> Network {
        let port = |link| Port {
            link,
            up_free: Duration::ZERO,
            down_free: Duration::ZERO,
            down_until: None,
            counts: Counts::default(),
        };
        Network {
            ports: links.into_iter().map(port).collect(),
            known: HashMap::new(),
            flights: BinaryHeap::new(),
            number: 0,
        }
    }

    /// What each link has done.
    pub fn counts(&self) -> impl Iterator<Item = Counts> {
        self.ports.iter().map(|port| port.counts)
    }

    /// The host at this port sends a frame.
    pub fn send(&mut self, now: Duration, from: usize, frame: Vec<u8>) {
        if frame.len() < 2 * ADDRESS {
            return;
        }
        let port = &mut self.ports[from];
        let Some(arrives) = port.carry(now, frame.len(), |port| &mut port.up_free) else {
            return;
        };
        port.counts.sent_bytes += frame.len() as u64;
        self.depart(arrives, Leg::From(from), frame);
    }

    /// When something arrives next.
    pub fn next(&self) -> Option<Duration> {
        self.flights.peek().map(|Reverse(flight)| flight.arrives)
    }

    /// The next frame that has arrived at a host by now, and its port.
    pub fn receive(&mut self, now: Duration) -> Option<(usize, Vec<u8>)> {
        while self.next().is_some_and(|arrives| arrives <= now) {
            let Reverse(flight) = self.flights.pop()?;
            match flight.leg {
                Leg::From(from) => self.switch(flight.arrives, from, &flight.frame),
                Leg::To(to) => {
                    self.ports[to].counts.received_bytes += flight.frame.len() as u64;
                    return Some((to, flight.frame));
                }
            }
        }
        None
    }

    fn switch(&mut self, now: Duration, from: usize, frame: &[u8]) {
        let address = |at: usize| {
            let mut address = [0; ADDRESS];
            address.copy_from_slice(&frame[at..at + ADDRESS]);
            address
        };
        self.known.insert(address(ADDRESS), from);
        let known = self.known.get(&address(0)).copied();
        // Whoever is not known, and everybody, is behind all other ports.
        let to = known.map_or(0..self.ports.len(), |to| to..to + 1);
        for to in to.filter(|to| *to != from) {
            let arrives = self.ports[to].carry(now, frame.len(), |port| &mut port.down_free);
            if let Some(arrives) = arrives {
                self.depart(arrives, Leg::To(to), frame.to_vec());
            }
        }
    }

    fn depart(&mut self, arrives: Duration, leg: Leg, frame: Vec<u8>) {
        self.number += 1;
        self.flights.push(Reverse(Flight {
            arrives,
            number: self.number,
            leg,
            frame,
        }));
    }
}

impl Port {
    /// When a frame is at the other end of the link; none if it is dropped.
    fn carry(
        &mut self,
        now: Duration,
        bytes: usize,
        free: impl Fn(&mut Port) -> &mut Duration,
    ) -> Option<Duration> {
        if self.is_down(now) {
            self.counts.lost += 1;
            return None;
        }
        let begins = now.max(*free(self));
        if begins - now > QUEUE {
            self.counts.dropped += 1;
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "frames are short")]
        let takes = Duration::from_secs_f64(bytes as f64 * 8.0 / self.link.bits_per_second);
        let sent = begins + takes;
        *free(self) = sent;
        Some(sent + self.link.delay)
    }

    fn is_down(&mut self, now: Duration) -> bool {
        let carried = self.counts.sent_bytes + self.counts.received_bytes;
        if let Some(loss) = self.link.losses.front() {
            if carried >= loss.after_bytes {
                self.down_until = Some(now + loss.lasts);
                self.link.losses.pop_front();
            }
        }
        self.down_until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn link(delay_ms: u32, bits_per_second: f64) -> Link {
        Link {
            delay: MS * delay_ms,
            bits_per_second,
            losses: VecDeque::new(),
        }
    }

    /// A frame of so many bytes.
    fn frame(to: u8, from: u8, bytes: usize) -> Vec<u8> {
        let mut frame = [[to; ADDRESS], [from; ADDRESS]].concat();
        frame.resize(bytes, 0);
        frame
    }

    /// All that arrives, with when and where.
    fn arrivals(network: &mut Network) -> Vec<(Duration, usize)> {
        let mut arrived = Vec::new();
        while let Some(now) = network.next() {
            while let Some((to, _)) = network.receive(now) {
                arrived.push((now, to));
            }
        }
        arrived
    }

    #[test]
    fn a_frame_takes_the_delay_of_both_links_and_its_length_at_both_rates() {
        let mut network = Network::new([link(1, 1e6), link(4, 0.5e6), link(0, 1e9)]);
        // Nobody knows yet where 1 is, so it goes everywhere: 125 bytes are 1 ms and
        // 2 ms long.
        network.send(MS, 0, frame(1, 0, 125));
        assert_eq!(
            arrivals(&mut network),
            [(MS * 3 + Duration::from_micros(1), 2), (MS * 9, 1)]
        );
        network.send(MS * 20, 1, frame(0, 1, 125));
        assert_eq!(arrivals(&mut network), [(MS * 28, 0)]);
        network.send(MS * 40, 0, frame(1, 0, 125));
        assert_eq!(arrivals(&mut network).len(), 1);
        let [zero, one, two] = *network.counts().collect::<Vec<_>>() else {
            panic!("there are three links");
        };
        assert_eq!((zero.sent_bytes, zero.received_bytes), (250, 125));
        assert_eq!((one.received_bytes, two.received_bytes), (250, 125));
    }

    #[test]
    fn frames_wait_for_each_other_and_for_no_longer_than_the_queue() {
        let mut network = Network::new([link(0, 1e6), link(0, 1e9)]);
        for _ in 0..100 {
            network.send(Duration::ZERO, 0, frame(1, 0, 125));
        }
        let arrived = arrivals(&mut network);
        // One more than waits: the one that is on its way.
        assert_eq!(arrived.len(), 51);
        let gaps = arrived.windows(2).map(|pair| pair[1].0 - pair[0].0);
        assert!(gaps.into_iter().all(|gap| gap == MS));
        assert_eq!(network.counts().next().map(|it| it.dropped), Some(49));
    }

    #[test]
    fn a_link_is_down_once_it_has_carried_so_much_and_comes_back() {
        let mut lossy = link(0, 1e9);
        lossy.losses = [(300, 10), (301, 20)]
            .map(|(after_bytes, ms)| Loss {
                after_bytes,
                lasts: MS * ms,
            })
            .into();
        let mut network = Network::new([lossy, link(0, 1e9)]);
        let arrived: Vec<u32> = (0..60)
            .filter(|at| {
                network.send(MS * *at, 0, frame(1, 0, 100));
                !arrivals(&mut network).is_empty()
            })
            .collect();
        let expected: Vec<u32> = [0, 1, 2, 13].into_iter().chain(34..60).collect();
        assert_eq!(arrived, expected);
        assert_eq!(network.counts().next().map(|it| it.lost), Some(30));
    }

    #[test]
    fn what_is_no_frame_goes_nowhere() {
        let mut network = Network::new([link(0, 1e9), link(0, 1e9)]);
        network.send(Duration::ZERO, 0, vec![0; 11]);
        assert_eq!(network.next(), None);
    }
}
