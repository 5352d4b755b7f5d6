//! What others write into the files, told to the program.

use std::ffi::c_void;

use milieu::{News, Watching, context::Difference, store::watch::FileNews};

use crate::{
    abi::{
        MILIEU_CHANGED, MILIEU_FILE_INVALID, MILIEU_FILE_UNWATCHED, MILIEU_FILE_VALID,
        MILIEU_KEYS_REFUSED, milieu_change, milieu_destroy, milieu_news, milieu_result,
        milieu_text,
    },
    call::{Failure, call, out},
    coordinator::{Coordinator, milieu_coordinator},
    handle::{self, Slot, handle},
    scope::User,
};

/// Files that are watched.
pub struct Watched(#[allow(dead_code)] Watching);

handle!(Watched, b"wtch", "milieu_watch");

/// See `milieu.h`.
#[allow(non_camel_case_types)]
pub type milieu_watch = Slot<Watched>;

/// See `milieu.h`.
#[allow(non_camel_case_types)]
pub type milieu_tell = Option<unsafe extern "C" fn(user: *mut c_void, news: *const milieu_news)>;

/// Tells the program; its texts are valid meanwhile.
fn told(tell: unsafe extern "C" fn(*mut c_void, *const milieu_news), user: &User, news: &News) {
    let (kind, message, differences) = match news {
        News::Changed(changed) => (MILIEU_CHANGED, String::new(), &changed[..]),
        News::Refused(invalid) => {
            let lines: Vec<String> = invalid.iter().map(ToString::to_string).collect();
            (MILIEU_KEYS_REFUSED, lines.join("\n"), &[][..])
        }
        News::File(FileNews::Invalid { error, .. }) => {
            (MILIEU_FILE_INVALID, error.to_string(), &[][..])
        }
        News::File(FileNews::Valid { path }) => {
            (MILIEU_FILE_VALID, path.display().to_string(), &[][..])
        }
        News::File(FileNews::Unwatched { error, .. }) => {
            (MILIEU_FILE_UNWATCHED, error.to_string(), &[][..])
        }
        // Nothing that this library's header has a word for.
        _ => return,
    };
    let origin = |it: &Difference| {
        let content = it.after.as_ref().or(it.before.as_ref());
        let origin = content.and_then(|content| content.origin.as_ref());
        origin.map_or_else(String::new, ToString::to_string)
    };
    let origins: Vec<String> = differences.iter().map(origin).collect();
    let text = |content: &Option<milieu::context::Content>| {
        let content = content.as_ref();
        content.map_or(milieu_text::EMPTY, |it| milieu_text::of(&it.text))
    };
    let change = |(it, origin): (&Difference, &String)| milieu_change {
        name: milieu_text::of(&it.name),
        before: text(&it.before),
        after: text(&it.after),
        origin: milieu_text::of(origin),
        secret: it.secret,
    };
    let changes: Vec<milieu_change> = differences.iter().zip(&origins).map(change).collect();
    let news = milieu_news {
        kind,
        changes: changes.as_ptr(),
        count: changes.len(),
        message: milieu_text::of(&message),
    };
    // SAFETY: the program has handed over both for this; everything is there
    // during the call.
    unsafe { tell(user.data(), &raw const news) };
}

/// Watches the files.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_watch_new(
    coordinator: *const milieu_coordinator,
    tell: milieu_tell,
    user: *mut c_void,
    destroy: milieu_destroy,
    watch: *mut *mut milieu_watch,
) -> milieu_result {
    let user = User::new(user, destroy);
    call(|| {
        // SAFETY: as the caller vouches.
        let (Coordinator(milieu), watch) =
            unsafe { (handle::shared(coordinator)?, out(watch, "watch")?) };
        let watching = milieu.watch(move |news| {
            // All of it goes along, whoever is told or not.
            let user = &user;
            if let Some(tell) = tell {
                told(tell, user, &news);
            }
        });
        *watch = handle::new(Watched(watching.map_err(Failure::from)?));
        Ok(())
    })
}

/// Ends watching.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_watch_free(watch: *mut milieu_watch) {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(watch)? });
        Ok(())
    });
}
