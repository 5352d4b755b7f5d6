//! What keys do in the view.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::order::{Filter, Order, Sort};

/// What the view shows beside the sample.
pub(super) struct State {
    pub(super) order: Order,
    pub(super) interval: Duration,
    /// The first thread that is shown.
    pub(super) top: usize,
    pub(super) is_paused: bool,
    pub(super) has_help: bool,
    /// The filter that is being written.
    pub(super) entry: Option<String>,
    /// What is wrong with it.
    pub(super) complaint: Option<String>,
}

/// What is to be done beside drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Draw,
    Look,
    Suspend,
    Quit,
}

pub(super) const HELP: &[&str] = &[
    "q, Ctrl-C  quit              c w s i  sort by processor, wait, switches, involuntary ones",
    "t          tree              k z e    sort by stack used, stack size, region",
    "r          reverse           o n p    sort by role, name, process",
    "/          filter            < >      the order before, the next one",
    "Esc        no filter         v m      sort by the process's virtual, resident memory",
    "blank      pause             + -      look less often, more often",
    "arrows, PgUp, PgDn, Home, End: move",
];

impl State {
    pub(super) fn new(order: Order, interval: Duration) -> State {
        State {
            order,
            interval: interval.clamp(FASTEST, SLOWEST),
            top: 0,
            is_paused: false,
            has_help: false,
            entry: None,
            complaint: None,
        }
    }

    /// Takes a key, when so many of so many threads can be shown.
    pub(super) fn press(&mut self, key: KeyEvent, page: usize, count: usize) -> Deed {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c' | 'd') if is_control => return Deed::Quit,
            KeyCode::Char('z') if is_control => return Deed::Suspend,
            KeyCode::Char('l') if is_control => return Deed::Look,
            _ if is_control => return Deed::Draw,
            _ => {}
        }
        if self.entry.is_some() {
            self.write(key.code);
            return Deed::Draw;
        }
        let last = count.saturating_sub(page);
        match key.code {
            KeyCode::Char('q') => return Deed::Quit,
            KeyCode::Char('h' | '?') | KeyCode::F(1) => self.has_help = !self.has_help,
            KeyCode::Char('c') => self.sort(Sort::Cpu),
            KeyCode::Char('w') => self.sort(Sort::Wait),
            KeyCode::Char('s') => self.sort(Sort::Switches),
            KeyCode::Char('i') => self.sort(Sort::Involuntary),
            KeyCode::Char('k') => self.sort(Sort::Stack),
            KeyCode::Char('z') => self.sort(Sort::Size),
            KeyCode::Char('e') => self.sort(Sort::Region),
            KeyCode::Char('o') => self.sort(Sort::Role),
            KeyCode::Char('n') => self.sort(Sort::Name),
            KeyCode::Char('p') => self.sort(Sort::Pid),
            KeyCode::Char('v') => self.sort(Sort::Virtual),
            KeyCode::Char('m') => self.sort(Sort::Resident),
            KeyCode::Char('<') | KeyCode::Left => self.sort(self.order.sort.next(false)),
            KeyCode::Char('>') | KeyCode::Right => self.sort(self.order.sort.next(true)),
            KeyCode::Char('r') => self.order.is_reversed = !self.order.is_reversed,
            KeyCode::Char('t') => self.order.is_tree = !self.order.is_tree,
            KeyCode::Char(' ') => {
                self.is_paused = !self.is_paused;
                return Deed::Look;
            }
            KeyCode::Char('/') => self.entry = Some(self.order.filter.text().to_owned()),
            KeyCode::Esc => (self.order.filter, self.has_help) = (Filter::default(), false),
            KeyCode::Char('+' | '=') => self.interval = (self.interval * 2).min(SLOWEST),
            KeyCode::Char('-') => self.interval = (self.interval / 2).max(FASTEST),
            KeyCode::Up => self.top = self.top.saturating_sub(1),
            KeyCode::Down => self.top = (self.top + 1).min(last),
            KeyCode::PageUp => self.top = self.top.saturating_sub(page.max(1)),
            KeyCode::PageDown => self.top = (self.top + page.max(1)).min(last),
            KeyCode::Home => self.top = 0,
            KeyCode::End => self.top = last,
            _ => {}
        }
        Deed::Draw
    }

    fn sort(&mut self, sort: Sort) {
        self.order.sort = sort;
        self.order.is_reversed = false;
    }

    /// A key while the filter is being written.
    fn write(&mut self, key: KeyCode) {
        let Some(text) = &mut self.entry else { return };
        self.complaint = None;
        match key {
            KeyCode::Enter => match text.parse() {
                Ok(filter) => {
                    self.order.filter = filter;
                    self.entry = None;
                    self.top = 0;
                }
                Err(error) => self.complaint = Some(error),
            },
            KeyCode::Esc => self.entry = None,
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char(letter) => text.push(letter),
            _ => {}
        }
    }
}

/// A view that looks more often changes what it shows.
const FASTEST: Duration = Duration::from_millis(250);
const SLOWEST: Duration = Duration::from_secs(64);

#[cfg(test)]
mod tests {
    use super::super::order::tests::order;
    use super::*;

    fn typed(state: &mut State, keys: &str) -> Deed {
        let mut deed = Deed::Draw;
        for letter in keys.chars() {
            let code = match letter {
                '\n' => KeyCode::Enter,
                '\x1b' => KeyCode::Esc,
                '\x08' => KeyCode::Backspace,
                '\t' => KeyCode::Down,
                letter => KeyCode::Char(letter),
            };
            deed = state.press(KeyEvent::from(code), 2, 5);
        }
        deed
    }

    #[test]
    fn keys_change_the_order_and_move() {
        let mut state = State::new(order(Sort::Cpu, "", false), Duration::from_secs(2));
        typed(&mut state, "wr");
        assert!(state.order.sort == Sort::Wait && state.order.is_reversed);
        typed(&mut state, ">");
        assert!(state.order.sort == Sort::Switches && !state.order.is_reversed);
        typed(&mut state, "\t\t\t\t\t\t");
        assert_eq!(state.top, 3);
        state.press(KeyEvent::from(KeyCode::PageUp), 2, 5);
        assert_eq!(state.top, 1);
        typed(&mut state, "v");
        assert_eq!(state.order.sort, Sort::Virtual);
        typed(&mut state, "t+");
        assert!(state.order.is_tree && state.interval == Duration::from_secs(4));
        assert_eq!(typed(&mut state, "----------"), Deed::Draw);
        assert_eq!(state.interval, FASTEST);
        assert_eq!(typed(&mut state, " "), Deed::Look);
        assert_eq!(typed(&mut state, "q"), Deed::Quit);
        let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
        assert_eq!(state.press(control('c'), 2, 5), Deed::Quit);
        assert_eq!(state.press(control('z'), 2, 5), Deed::Suspend);
    }

    #[test]
    fn a_filter_is_written_and_a_wrong_one_is_complained_of() {
        let mut state = State::new(order(Sort::Cpu, "", false), Duration::from_secs(2));
        typed(&mut state, "/colour=q");
        assert_eq!(state.entry.as_deref(), Some("colour=q"));
        typed(&mut state, "\n");
        assert!(state.complaint.is_some() && state.entry.is_some());
        typed(&mut state, "\x08\x08\x08\x08\x08\x08\x08\x08ui\n");
        assert!(state.entry.is_none() && state.complaint.is_none());
        assert_eq!(state.order.filter.text(), "ui");
        typed(&mut state, "/x\x1b");
        assert_eq!(state.order.filter.text(), "ui");
        typed(&mut state, "\x1b");
        assert_eq!(state.order.filter.text(), "");
    }
}
