//! Threads that say what they are for before they exist.

use std::io;
use std::ops::Deref;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle, Scope, ScopedJoinHandle};

use milieu_threads::kernel;

use super::handle::Running;
use super::keeper::Message;
use super::{Attributes, Mediator, Priority, Region, Return, StackSize, Thread};

/// What a thread is to be, before it exists. As [`std::thread::Builder`], but that
/// a thread has a role and begins in the region that this and its other attributes
/// put it in.
#[must_use = "no thread runs before `spawn`"]
pub struct ThreadBuilder<'m> {
    mediator: &'m Mediator,
    attributes: Attributes,
    name: Option<String>,
    is_excluded: bool,
}

impl<'m> ThreadBuilder<'m> {
    pub(super) fn new(mediator: &'m Mediator, attributes: Attributes) -> ThreadBuilder<'m> {
        ThreadBuilder {
            mediator,
            attributes,
            name: None,
            is_excluded: false,
        }
    }

    /// Time-critical, before those whose priority is a higher nice value.
    pub fn critical(mut self, priority: Priority) -> Self {
        self.attributes = self.attributes.time_critical(priority);
        self
    }

    /// Bound to the lazy region, also while nobody is in the fast one.
    pub fn lazy(mut self) -> Self {
        self.attributes = self.attributes.lazy();
        self
    }

    /// Left alone by the mediator.
    pub fn excluded(mut self) -> Self {
        self.is_excluded = true;
        self
    }

    /// With a stack of at least this size, whatever was learned.
    pub fn stack(mut self, size: StackSize) -> Self {
        self.attributes = self.attributes.with_stack(size);
        self
    }

    /// With this name in monitors and messages, instead of its role.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Begins it. Where a thread that is lazy cannot return, and this one is lazy
    /// and the new one must not be, the mediator's thread begins it.
    ///
    /// # Errors
    /// If the system has no thread left; nothing runs then.
    pub fn spawn<F, T>(self, body: F) -> io::Result<Spawned<JoinHandle<T>>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let would_inherit = self.would_inherit();
        let (mediator, prepared) = (self.mediator, self.prepare());
        let Prepared {
            builder,
            thread,
            body,
        } = prepared.with(body);
        let handle = if would_inherit {
            let (tell, told) = channel();
            mediator.ask(Message::Do(Box::new(move || {
                // If nobody listens any more, the thread runs for itself.
                let _ = tell.send(builder.spawn(body));
            })));
            let begun = told.recv();
            begun.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
        } else {
            builder.spawn(body)
        };
        mediator.shared().was_asked(handle.is_ok());
        Ok(Spawned {
            handle: handle?,
            thread,
        })
    }

    /// Begins it within a scope, as [`std::thread::Builder::spawn_scoped`].
    ///
    /// # Errors
    /// If the system has no thread left; or, as `Unsupported`, if this thread is
    /// lazy, cannot return, and would hand that on to one that must not be.
    pub fn spawn_scoped<'scope, 'env, F, T>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        body: F,
    ) -> io::Result<Spawned<ScopedJoinHandle<'scope, T>>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        if self.would_inherit() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "a lazy thread that cannot return would begin a thread that must not be lazy; \
                 begin it by `spawn`, which another thread does for it, or in a thread that is \
                 not lazy",
            ));
        }
        let (mediator, prepared) = (self.mediator, self.prepare());
        let Prepared {
            builder,
            thread,
            body,
        } = prepared.with(body);
        let handle = builder.spawn_scoped(scope, body);
        mediator.shared().was_asked(handle.is_ok());
        Ok(Spawned {
            handle: handle?,
            thread,
        })
    }

    /// Whether the new thread would be lazy for ever, though it is not to be,
    /// because this one is.
    fn would_inherit(&self) -> bool {
        let shared = self.mediator.shared();
        let is_to_run = self.is_excluded || self.attributes.is_time_critical();
        let is_final = || matches!(shared.program.rung(), Some((_, Return::Never)));
        let is_lazy = || {
            let own = shared.program.table().lines().entry(kernel::identity());
            own.is_ok_and(|it| it.region == Region::Lazy)
        };
        is_to_run && is_final() && is_lazy()
    }

    fn prepare(self) -> Prepared<impl FnOnce() -> Running + Send + use<>> {
        let shared = self.mediator.shared();
        let role = self.attributes.role();
        let (own, attributes) = shared.roles().of_builder(self.attributes);
        let attributes = match self.attributes.stack() {
            Some(stack) => attributes.with_stack(stack),
            None => attributes,
        };
        let mut builder = thread::Builder::new();
        let name = self.name.unwrap_or_else(|| role.as_str().to_owned());
        if !name.is_empty() {
            builder = builder.name(name);
        }
        let asked = attributes.stack().map(StackSize::bytes);
        if let Some(bytes) = shared.stack_bytes(role, asked) {
            builder = builder.stack_size(usize::try_from(bytes).unwrap_or(usize::MAX));
        }
        let thread = Thread::asked(shared, own, attributes);
        let creator = shared.program.own(kernel::identity()).ok();
        let known = shared.creator();
        shared.is_asked();
        let body = {
            let (thread, shared, is_excluded) = (thread.clone(), shared.clone(), self.is_excluded);
            move || {
                let running = thread.begins(creator, is_excluded);
                shared.has_begun_by(known);
                shared.has_begun();
                running
            }
        };
        Prepared {
            builder,
            thread,
            body,
        }
    }
}

/// A thread that only has to be begun.
struct Prepared<F> {
    builder: thread::Builder,
    thread: Thread,
    body: F,
}

impl<B: FnOnce() -> R + Send, R> Prepared<B> {
    /// What begins as prepared, and then does this.
    fn with<F: FnOnce() -> T + Send, T>(self, body: F) -> Prepared<impl FnOnce() -> T + Send> {
        let begin = self.body;
        Prepared {
            builder: self.builder,
            thread: self.thread,
            body: move || {
                let _running = begin();
                body()
            },
        }
    }
}

/// A thread that was begun, to be joined: what is known of it as a [`Thread`], and
/// the standard library's handle.
#[derive(Debug)]
pub struct Spawned<H> {
    handle: H,
    thread: Thread,
}

/// What is known of it.
impl<H> Deref for Spawned<H> {
    type Target = Thread;

    fn deref(&self) -> &Thread {
        &self.thread
    }
}

impl<H> Spawned<H> {
    /// The standard library's handle.
    pub fn handle(&self) -> &H {
        &self.handle
    }

    /// The standard library's handle, for who joins it.
    pub fn into_handle(self) -> H {
        self.handle
    }
}

impl<T> Spawned<JoinHandle<T>> {
    /// Waits until it has ended.
    ///
    /// # Errors
    /// What it panicked with.
    pub fn join(self) -> thread::Result<T> {
        self.handle.join()
    }
}

impl<T> Spawned<ScopedJoinHandle<'_, T>> {
    /// Waits until it has ended.
    ///
    /// # Errors
    /// What it panicked with.
    pub fn join(self) -> thread::Result<T> {
        self.handle.join()
    }
}
