//! Coordinators and the files behind them.

use std::{ffi::OsString, os::unix::ffi::OsStringExt, path::PathBuf, sync::Arc};

use milieu::{Error, Milieu, Start, context::KeyError, keys::options::Program, store::Locations};

use crate::{
    abi::{
        MILIEU_CYCLE, MILIEU_FILES, MILIEU_INVALID, MILIEU_NO_SUCH, MILIEU_SAY, MILIEU_UNFIT,
        MILIEU_USAGE, MILIEU_WRONG_LAYOUT, MILIEU_WRONG_NAME, milieu_options, milieu_result,
        milieu_text,
    },
    call::{Failure, call, null, out},
    handle::{self, Slot, handle},
    layout::{self, check_abi},
    text::read_slice,
};

/// What contexts share.
pub struct Coordinator(pub(crate) Arc<Milieu>);

handle!(Coordinator, b"coor", "milieu_coordinator");

/// See `milieu.h`.
#[allow(non_camel_case_types)]
pub type milieu_coordinator = Slot<Coordinator>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let result = match &error {
            Error::Store(_) => MILIEU_FILES,
            Error::Options(_) => MILIEU_USAGE,
            Error::Rules(_) => MILIEU_WRONG_LAYOUT,
            Error::Switch(_) => MILIEU_CYCLE,
            Error::Layer(_) => MILIEU_NO_SUCH,
            Error::Invalid(_) => MILIEU_INVALID,
            Error::Name(_) => MILIEU_WRONG_NAME,
            Error::Key(key) => match **key {
                KeyError::Invalid(_) => MILIEU_INVALID,
                KeyError::Name(_) => MILIEU_WRONG_NAME,
            },
            // Of the others only some are of the parts that are used here.
            _ => MILIEU_UNFIT,
        };
        Failure::new(result, error)
    }
}

/// A coordinator without files.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_coordinator_new(
    coordinator: *mut *mut milieu_coordinator,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let coordinator = unsafe { out(coordinator, "coordinator")? };
        *coordinator = start(Milieu::builder("").files(Vec::new()))?;
        Ok(())
    })
}

/// Opens the settings of an application.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_coordinator_open(
    application: milieu_text,
    options: *const milieu_options,
    coordinator: *mut *mut milieu_coordinator,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (application, options, coordinator) = unsafe {
            (
                application.read("application")?,
                options.as_ref(),
                out(coordinator, "coordinator")?,
            )
        };
        let mut builder = Milieu::builder(application);
        if let Some(options) = options {
            check_abi(options.abi, "options")?;
            // SAFETY: as the caller vouches.
            builder = unsafe { with_options(builder, application, options)? };
        }
        *coordinator = start(builder)?;
        Ok(())
    })
}

fn start(builder: milieu::Builder) -> Result<*mut milieu_coordinator, Failure> {
    match builder.start()? {
        Start::Run(milieu) => Ok(handle::new(Coordinator(Arc::from(milieu)))),
        Start::Say(text) => Err(Failure::new(MILIEU_SAY, text)),
    }
}

/// # Safety
///
/// Everything that the options lead to is readable.
unsafe fn with_options(
    mut builder: milieu::Builder,
    application: &str,
    options: &milieu_options,
) -> Result<milieu::Builder, Failure> {
    // SAFETY: as the caller vouches.
    let (user, system, description) = unsafe {
        (
            options.user_folder.read("user_folder")?,
            options.system_folder.read("system_folder")?,
            options.description.read("description")?,
        )
    };
    if !user.is_empty() || !system.is_empty() {
        let mut locations = Locations::from_environment(|name| std::env::var_os(name));
        if !user.is_empty() {
            locations.user = Some(user.into());
        }
        if !system.is_empty() {
            locations.system = Vec::new();
            locations.etc = PathBuf::from(system);
        }
        builder = builder.locations(locations);
    }
    if options.arguments.is_null() {
        return Ok(builder);
    }
    if options.layout.is_null() {
        return Err(null("layout"));
    }
    let count = usize::try_from(options.argument_count).unwrap_or(0);
    // SAFETY: as the caller vouches.
    let (layout, strings) = unsafe {
        (
            layout::read(options.layout)?,
            read_slice(options.arguments, count, "arguments")?,
        )
    };
    let mut arguments = Vec::with_capacity(count);
    for string in strings.iter().skip(1) {
        if string.is_null() {
            return Err(null("arguments"));
        }
        // SAFETY: as the caller vouches; arguments are any bytes.
        let bytes = unsafe { std::ffi::CStr::from_ptr(*string) }.to_bytes();
        arguments.push(OsString::from_vec(bytes.to_vec()));
    }
    let mut program = Program::new(application);
    if !description.is_empty() {
        program = program.description(description);
    }
    let variable = |name: &str| std::env::var_os(name);
    Ok(builder.arguments_of(layout.description(), program, arguments, variable))
}

/// Gives a coordinator back.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_coordinator_free(coordinator: *mut milieu_coordinator) {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(coordinator)? });
        Ok(())
    });
}

/// Assigns a key by its name.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_coordinator_assign(
    coordinator: *const milieu_coordinator,
    name: milieu_text,
    value: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Coordinator(milieu), name, value) = unsafe {
            (
                handle::shared(coordinator)?,
                name.read("name")?,
                value.read("value")?,
            )
        };
        let assigned = milieu.coordinator().assign(name, value, None);
        Ok(assigned.map_err(Error::from)?)
    })
}

/// Removes the user's key of a name.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_coordinator_remove(
    coordinator: *const milieu_coordinator,
    name: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Coordinator(milieu), name) =
            unsafe { (handle::shared(coordinator)?, name.read("name")?) };
        let removed = milieu.coordinator().remove(name);
        Ok(removed.map_err(Error::from)?)
    })
}

/// Writes what the program has assigned.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_coordinator_persist(
    coordinator: *const milieu_coordinator,
    branch: milieu_text,
    written: *mut usize,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Coordinator(milieu), branch, written) = unsafe {
            (
                handle::shared(coordinator)?,
                branch.read("branch")?,
                written.as_mut(),
            )
        };
        let branch = if branch.is_empty() { "/" } else { branch };
        let persisted = milieu.persist_below(&[branch])?;
        if let Some(written) = written {
            *written = persisted.names.len();
        }
        Ok(())
    })
}
