//! The files behind a coordinator, and the command line.

#[cfg(feature = "options")]
use std::{ffi::OsString, os::unix::ffi::OsStringExt};
use std::{
    ffi::c_int,
    path::{Path, PathBuf},
    sync::Arc,
};

#[cfg(feature = "options")]
use milieu::keys::options::Program;
use milieu::{
    Milieu, Start,
    store::{Locations, Strategy},
};

#[cfg(not(feature = "options"))]
use crate::abi::MILIEU_UNFIT;
use crate::text::read_slice;
use crate::{
    abi::{
        MILIEU_NO_SUCH, MILIEU_OURS, MILIEU_REFUSE_CONFLICT, MILIEU_SAY, MILIEU_THEIRS,
        milieu_options, milieu_result, milieu_text,
    },
    call::{Failure, call, out},
    coordinator::{Coordinator, milieu_coordinator},
    handle,
    layout::check_abi,
};
#[cfg(feature = "options")]
use crate::{call::null, layout};

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
            builder = unsafe { with_files(builder, options)? };
            // SAFETY: as the caller vouches.
            builder = unsafe { with_arguments(builder, application, options)? };
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
unsafe fn with_files(
    builder: milieu::Builder,
    options: &milieu_options,
) -> Result<milieu::Builder, Failure> {
    // SAFETY: as the caller vouches.
    let (user, system) = unsafe {
        (
            options.user_folder.read("user_folder")?,
            options.system_folder.read("system_folder")?,
        )
    };
    if user.is_empty() && system.is_empty() {
        return Ok(builder);
    }
    let mut locations = Locations::from_environment(|name| std::env::var_os(name));
    if !user.is_empty() {
        locations.user = Some(user.into());
    }
    if !system.is_empty() {
        locations.system = Vec::new();
        locations.etc = PathBuf::from(system);
    }
    Ok(builder.locations(locations))
}

/// # Safety
///
/// Everything that the options lead to is readable.
#[cfg(not(feature = "options"))]
unsafe fn with_arguments(
    builder: milieu::Builder,
    _: &str,
    options: &milieu_options,
) -> Result<milieu::Builder, Failure> {
    if options.arguments.is_null() {
        return Ok(builder);
    }
    let message = "this library was built without the feature `options`, so leave `arguments` out";
    Err(Failure::new(MILIEU_UNFIT, message))
}

/// # Safety
///
/// Everything that the options lead to is readable.
#[cfg(feature = "options")]
unsafe fn with_arguments(
    builder: milieu::Builder,
    application: &str,
    options: &milieu_options,
) -> Result<milieu::Builder, Failure> {
    if options.arguments.is_null() {
        return Ok(builder);
    }
    if options.layout.is_null() {
        return Err(null("layout"));
    }
    let count = usize::try_from(options.argument_count).unwrap_or(0);
    // SAFETY: as the caller vouches.
    let (layout, strings, description) = unsafe {
        (
            layout::read(options.layout)?,
            read_slice(options.arguments, count, "arguments")?,
            options.description.read("description")?,
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

/// Reads files that the program brings along.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_coordinator_defaults(
    coordinator: *const milieu_coordinator,
    files: *const milieu_text,
    count: usize,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Coordinator(milieu), files) = unsafe {
            (
                handle::shared(coordinator)?,
                read_slice(files, count, "files")?,
            )
        };
        // SAFETY: as the caller vouches.
        let files = files.iter().map(|file| unsafe { file.read("files") });
        let files: Vec<&Path> = files
            .map(|file| file.map(Path::new))
            .collect::<Result<_, _>>()?;
        Ok(milieu.defaults(&files)?)
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
        persist(milieu, branch, Strategy::Refuse, written)
    })
}

fn persist(
    milieu: &Milieu,
    branch: &str,
    strategy: Strategy,
    written: Option<&mut usize>,
) -> Result<(), Failure> {
    let persisted = milieu.persist_with(&[branch_of(branch)], strategy)?;
    if let Some(written) = written {
        *written = persisted.names.len();
    }
    Ok(())
}

/// What an empty text means.
pub(crate) fn branch_of(branch: &str) -> &str {
    if branch.is_empty() { "/" } else { branch }
}

/// Writes what the program has assigned, and says who is right in a conflict.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_coordinator_persist_with(
    coordinator: *const milieu_coordinator,
    branch: milieu_text,
    strategy: c_int,
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
        persist(milieu, branch, strategy_of(strategy)?, written)
    })
}

/// Who is right, by its number.
pub(crate) fn strategy_of(strategy: c_int) -> Result<Strategy, Failure> {
    match u32::try_from(strategy) {
        Ok(MILIEU_REFUSE_CONFLICT) => Ok(Strategy::Refuse),
        Ok(MILIEU_OURS) => Ok(Strategy::Ours),
        Ok(MILIEU_THEIRS) => Ok(Strategy::Theirs),
        _ => {
            let message = format!("there is no strategy {strategy}; see milieu_strategy");
            Err(Failure::new(MILIEU_NO_SUCH, message))
        }
    }
}
