//! The view on a terminal, which it leaves as it was however it ends.

use std::io::{self, Write};
use std::panic;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, Event, KeyEventKind};
use crossterm::style::{Attribute, Color, Print, SetAttribute, SetForegroundColor};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap,
    EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use crossterm::{execute, queue};
use milieu_device::monitor::{Monitor, Sample};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::super::{Failure, Outcome};
use super::keys::{Deed, HELP, State};
use super::order::Order;
use super::table::{self, BEFORE, Line, Style};

/// How soon a signal is noticed.
const NOTICE: Duration = Duration::from_millis(500);

/// A terminal that is ours, until this is dropped.
struct Screen {
    /// What is shown, so that only what changes is written.
    shown: Vec<Line>,
    has_colour: bool,
}

/// Makes the terminal what it was. Whatever cannot be undone is left.
fn leave() {
    let _ = execute!(
        io::stdout(),
        EndSynchronizedUpdate,
        SetAttribute(Attribute::Reset),
        EnableLineWrap,
        Show,
        LeaveAlternateScreen
    );
    let _ = disable_raw_mode();
}

impl Screen {
    fn enter() -> io::Result<Screen> {
        enable_raw_mode()?;
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
        let screen = Screen {
            shown: Vec::new(),
            has_colour: !no_colour,
        };
        execute!(
            io::stdout(),
            EnterAlternateScreen,
            Hide,
            DisableLineWrap,
            Clear(ClearType::All)
        )?;
        Ok(screen)
    }

    fn draw(&mut self, lines: Vec<Line>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        queue!(out, BeginSynchronizedUpdate)?;
        for (at, line) in lines.iter().enumerate() {
            if self.shown.get(at) == Some(line) {
                continue;
            }
            queue!(out, MoveTo(0, at as u16))?;
            for (style, text) in &line.0 {
                self.dress(&mut out, *style)?;
                queue!(out, Print(text), SetAttribute(Attribute::Reset))?;
            }
            queue!(out, Clear(ClearType::UntilNewLine))?;
        }
        if lines.len() < self.shown.len() {
            queue!(
                out,
                MoveTo(0, lines.len() as u16),
                Clear(ClearType::FromCursorDown)
            )?;
        }
        queue!(out, EndSynchronizedUpdate)?;
        self.shown = lines;
        out.flush()
    }

    fn dress(&self, out: &mut impl Write, style: Style) -> io::Result<()> {
        let colour = match style {
            Style::Plain | Style::Heading | Style::Process => None,
            Style::Dim => Some(Color::DarkGrey),
            Style::Fast | Style::Normal => Some(Color::Green),
            Style::Lazy | Style::Low => Some(Color::Blue),
            Style::High | Style::Alarm => Some(Color::Red),
        };
        if let Some(colour) = colour.filter(|_| self.has_colour) {
            queue!(out, SetForegroundColor(colour))?;
        }
        match style {
            Style::Heading => queue!(out, SetAttribute(Attribute::Reverse)),
            Style::Process | Style::Alarm => queue!(out, SetAttribute(Attribute::Bold)),
            _ => Ok(()),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Shows samples until somebody wants it to end.
pub(super) fn show(monitor: &mut Monitor, order: Order, interval: Duration) -> Outcome {
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP, SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, is_over.clone()).map_err(Failure::Output)?;
    }
    // What a panic says is read on a terminal that shows it.
    let before = Arc::new(panic::take_hook());
    let hook = before.clone();
    panic::set_hook(Box::new(move |panic| {
        leave();
        hook(panic);
    }));
    let shown = run(monitor, State::new(order, interval), &is_over);
    panic::set_hook(Box::new(move |panic| before(panic)));
    match shown {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Failure::Output(error)),
    }
}

fn run(monitor: &mut Monitor, mut state: State, is_over: &AtomicBool) -> io::Result<()> {
    let mut screen = Screen::enter()?;
    let mut sample = monitor.sample(Instant::now());
    // The first rates are there soon.
    let mut next = Instant::now() + state.interval.min(NOTICE);
    loop {
        let (width, height) = size()?;
        let (lines, page, count) = view(&sample, &mut state, width.into(), height.into());
        screen.draw(lines)?;
        let deed = loop {
            if is_over.load(Ordering::Relaxed) {
                break Deed::Quit;
            }
            let now = Instant::now();
            if now >= next && !state.is_paused {
                break Deed::Look;
            }
            let wait = if state.is_paused { NOTICE } else { next - now };
            match event::poll(wait.min(NOTICE)) {
                Ok(false) => continue,
                // A signal, perhaps one that ends it.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(true) => {}
                Err(error) => return Err(error),
            }
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    break state.press(key, page, count);
                }
                Event::Resize(..) => {
                    screen.shown.clear();
                    execute!(io::stdout(), Clear(ClearType::All))?;
                    break Deed::Draw;
                }
                _ => {}
            }
        };
        match deed {
            Deed::Draw => {}
            Deed::Look => {
                sample = monitor.sample(Instant::now());
                next = Instant::now() + state.interval;
            }
            Deed::Suspend => {
                drop(screen);
                signal_hook::low_level::raise(signal_hook::consts::SIGTSTP)?;
                screen = Screen::enter()?;
            }
            Deed::Quit => return Ok(()),
        }
    }
}

/// What is on the screen, how many threads fit there, and how many there are.
fn view(
    sample: &Sample,
    state: &mut State,
    width: usize,
    height: usize,
) -> (Vec<Line>, usize, usize) {
    let mut lines = table::lines(sample, &state.order, Some(width));
    let rest = lines.split_off(BEFORE.min(lines.len()));
    let mut foot = Vec::new();
    if state.has_help {
        foot.extend(
            HELP.iter()
                .map(|it| Line(vec![(Style::Plain, (*it).to_owned())])),
        );
    }
    foot.push(Line(vec![status(state)]));
    let page = height.saturating_sub(BEFORE + foot.len());
    state.top = state.top.min(rest.len().saturating_sub(page));
    lines.extend(rest.iter().skip(state.top).take(page).cloned());
    // The foot stays where it is.
    lines.resize(
        height.saturating_sub(foot.len()).max(lines.len()),
        Line::default(),
    );
    lines.extend(foot);
    lines.truncate(height);
    (
        lines.iter().map(|it| it.cut(width)).collect(),
        page,
        rest.len(),
    )
}

fn status(state: &State) -> (Style, String) {
    if let Some(complaint) = &state.complaint {
        return (Style::Alarm, complaint.clone());
    }
    if let Some(entry) = &state.entry {
        return (
            Style::Heading,
            format!("filter: {entry}_   (Enter takes it, Esc does not)"),
        );
    }
    let sort = clap::ValueEnum::to_possible_value(&state.order.sort);
    let sort = sort.map_or(String::new(), |it| it.get_name().to_owned());
    let direction = if state.order.is_reversed {
        ", reversed"
    } else {
        ""
    };
    let pause = if state.is_paused { ", paused" } else { "" };
    (
        Style::Dim,
        format!(
            "by {sort}{direction}, every {} s{pause}   q quit  ? help  t tree  / filter  < > order",
            state.interval.as_secs_f64()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::order::Sort;
    use super::super::order::tests::{order, sample};
    use super::*;

    #[test]
    fn the_view_fits_whatever_the_size_of_the_terminal() {
        let sample = sample();
        for has_help in [false, true] {
            for height in 0..30 {
                for width in [0, 1, 10, 80, 300] {
                    let mut state = State::new(order(Sort::Cpu, "", true), NOTICE);
                    (state.has_help, state.top) = (has_help, 100);
                    let (lines, page, count) = view(&sample, &mut state, width, height);
                    assert!(lines.len() <= height && page <= height && count == 8);
                    let longest = lines.iter().map(|it| it.plain().chars().count()).max();
                    assert!(longest.unwrap_or(0) <= width);
                }
            }
        }
    }
}
