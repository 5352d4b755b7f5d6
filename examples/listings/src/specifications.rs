//! What the compiler makes of the paper's specifications: for each an
//! environment, its markers (`at`) and its layers (`layer`).

/// Section II: a boolean that the layer `security` decides.
pub mod watchdog {
    milieu::environment!("watchdog.ini");
}

/// Section III-A: the contextual value `cv`, and what depends on it.
pub mod device {
    milieu::environment!("device.ini");
}

/// Section III-C: a number.
pub mod number {
    milieu::environment!("value.ini");
}

/// Section III-D: an accuracy that the layer `battery_low` decides.
pub mod algorithm {
    milieu::environment!("algorithm.ini");
}

/// Section III-E: what threads differ in.
pub mod workers {
    milieu::environment!("workers.ini");
}

/// Section III-F: a timeout that shutting down influences.
pub mod server {
    milieu::environment!("server.ini");
}

/// Section III-G: a read-only value with an option.
pub mod version {
    milieu::environment!("version.ini");
}

/// Section IV-A: sessions, languages and tampering.
pub mod http {
    milieu::environment!("http.ini");
}

/// Section IV-A: where the pins are, by hardware profile.
pub mod hardware {
    milieu::environment!("profile.ini");
}
