//! `milieu completion SHELL`: the script that completes commands and options.

use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use crate::terminal;

/// Print the completion script of a shell
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu completion bash > ~/.local/share/bash-completion/completions/milieu
  milieu completion fish > ~/.config/fish/completions/milieu.fish")]
pub(crate) struct Completion {
    /// The shell that reads the script
    shell: Shell,
}

impl Completion {
    pub(crate) fn run(&self, mut command: clap::Command) -> ExitCode {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "milieu", &mut script);
        terminal::finish(
            terminal::print(&String::from_utf8_lossy(&script)).map(|()| ExitCode::SUCCESS),
        )
    }
}
