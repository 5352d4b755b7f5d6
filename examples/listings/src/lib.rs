//! Every listing of the CoElektra paper, in Rust: M. Raab, *Global and
//! Thread-Local Activation of Contextual Program Execution Environments*, 2015.
//!
//! Each module is one listing, under the section that prints it, and can be
//! read beside the paper. Its `run` executes the listing, with the paper's
//! assertions, and returns what there is to say. Where the paper slips, the
//! module says how and does what was meant.
//!
//! The specifications are those that the paper prints, in the files `*.ini`
//! beside `Cargo.toml`; where it prints none, the file says so.

pub mod specifications;

/// A listing of the paper.
pub struct Listing {
    /// The section that prints it.
    pub section: &'static str,
    /// What the paper calls it, or what it is about.
    pub title: &'static str,
    /// Executes it and returns a line that says what came of it.
    pub run: fn() -> Result<String, milieu::Error>,
}

macro_rules! listings {
    ($($section:literal $title:literal $module:ident;)*) => {
        $(pub mod $module;)*

        /// All of them, in the order of the paper.
        pub const LISTINGS: &[Listing] = &[
            $(Listing { section: $section, title: $title, run: $module::run }),*
        ];

        #[cfg(test)]
        mod tests {
            $(
                #[test]
                fn $module() -> Result<(), milieu::Error> {
                    assert_ne!(super::$module::run()?, "");
                    Ok(())
                }
            )*
        }
    };
}

listings! {
    "II" "printWatchdogStatus" print_watchdog_status;
    "II" "enableWatchdogInSecurityContext" enable_watchdog_in_security_context;
    "II" "class Security" security;
    "III-A" "enableWatchdog" enable_watchdog;
    "III-A" "deactivate beside activate" deactivate_beside_activate;
    "III-A" "activate beside syncLayers" activate_beside_sync;
    "III-C" "assignment" assignment;
    "III-C" "a new value is up to date" new_value;
    "III-D" "calculateTask" calculate_task;
    "III-E" "class Thread" thread;
    "III-E" "a pool of threads" pool;
    "III-F" "startupcode" startupcode;
    "III-F" "Shutdown" shutdown;
    "III-G" "policies" policies;
    "III-G" "main" version;
    "IV-A" "an HTTP session" session;
    "IV-A" "kdb.set under requireLock" persist;
    "IV-A" "tampering" tamper;
    "IV-A" "hardware profiles" hardware;
    "IV-B" "the loop that tampers" tamper_loop;
    "IV-B" "the loop that locks" lock_loop;
}
