//! Markdown: a reference of all keys, branch by branch, for people.
//!
//! First what a reader looks for, in tables: the command line, the layers, the
//! keys of each branch. Below each table stands what is to say about each key.

use milieu_diagnostics::Diagnostic;

use crate::{
    backend::{Backend, Capabilities, File, Settings},
    facts,
    ir::{Branch, Environment, Layer, Member, Value},
    prose::{code, markdown, markdown_inline},
};

/// The back end for Markdown.
#[derive(Clone, Copy, Debug)]
pub struct Markdown;

impl Backend for Markdown {
    fn name(&self) -> &'static str {
        "markdown"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            identifiers: false,
            inside_arrays: true,
        }
    }

    fn generate(
        &self,
        environment: &Environment,
        settings: &Settings,
    ) -> Result<Vec<File>, Vec<Diagnostic>> {
        let mut document = Document::default();
        document.heading(1, &markdown_inline(&settings.program));
        document.block(environment.description().map(markdown).unwrap_or_default());
        document.command_line(environment);
        document.layers(&environment.layers);
        document.branch(&environment.root, environment);
        document.removed(environment);
        Ok(vec![File {
            name: format!("{}.md", settings.program),
            text: document.0,
        }])
    }
}

/// Blocks with an empty line between them.
#[derive(Default)]
struct Document(String);

impl Document {
    fn block(&mut self, lines: impl IntoIterator<Item = String>) {
        let mut lines = lines.into_iter().peekable();
        if lines.peek().is_none() {
            return;
        }
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        for line in lines {
            self.0.push_str(line.trim_end());
            self.0.push('\n');
        }
    }

    fn heading(&mut self, level: usize, text: &str) {
        self.block([format!("{} {text}", "#".repeat(level))]);
    }

    fn table<const N: usize>(&mut self, head: [&str; N], rows: Vec<[String; N]>) {
        if rows.is_empty() {
            return;
        }
        let rule = format!("|{}", "---|".repeat(N));
        let head = format!("| {} |", head.join(" | "));
        let rows = rows
            .into_iter()
            .map(|row| format!("| {} |", row.join(" | ")));
        self.block([head, rule].into_iter().chain(rows));
    }

    fn command_line(&mut self, environment: &Environment) {
        if !environment.has_command_line() {
            return;
        }
        self.heading(2, "Command line");
        for (path, command) in environment.options.commands() {
            if command.hidden() {
                continue;
            }
            self.block([code(&environment.options.synopsis(&path))]);
            if let Some(help) = command.help().filter(|_| !path.is_empty()) {
                self.block(markdown(help));
            }
            let entries: Vec<_> = environment.options.entries_of(&path).collect();
            let rows = environment
                .values
                .iter()
                .filter(|value| !facts::is_hidden(value))
                .filter_map(|value| {
                    let entry = value.entry.as_ref()?;
                    let belongs = entries.iter().any(|own| own.pattern() == entry.pattern());
                    let option = facts::option(value).filter(|_| belongs)?;
                    Some([
                        cell_code(&option.plain()),
                        cell_code(&value.pattern),
                        entry.help().map(markdown_inline).unwrap_or_default(),
                    ])
                })
                .collect();
            self.table(["Option", "Key", "Meaning"], rows);
        }
    }

    fn layers(&mut self, layers: &[Layer]) {
        if layers.is_empty() {
            return;
        }
        self.heading(2, "Layers");
        let rows = layers
            .iter()
            .map(|layer| {
                [
                    cell_code(&layer.name),
                    facts::layer_value(&layer.shape).markdown(),
                    layer
                        .metadata("description")
                        .map(markdown_inline)
                        .unwrap_or_default(),
                ]
            })
            .collect();
        self.table(["Layer", "Value", "Meaning"], rows);
    }

    fn branch(&mut self, branch: &Branch, environment: &Environment) {
        let values: Vec<&Value> = facts::values_of(branch, environment);
        // The description of the root is that of the document.
        let described = branch.description.as_deref().filter(|_| branch.name != "/");
        if !values.is_empty() || described.is_some() {
            self.heading(2, &code(&branch.name));
            self.block(described.map(markdown).unwrap_or_default());
            let rows = values.iter().map(|value| row(value)).collect();
            self.table(["Key", "Type", "Default", "Meaning"], rows);
            for value in values {
                self.value(value);
            }
        }
        for member in &branch.members {
            if let Member::Branch(below) = member {
                self.branch(below, environment);
            }
        }
    }

    fn removed(&mut self, environment: &Environment) {
        let removed = facts::removed(environment);
        if removed.is_empty() {
            return;
        }
        self.heading(2, "Removed keys");
        let row = |(key, reason)| [cell_code(key), markdown_inline(reason)];
        self.table(["Key", "Reason"], removed.into_iter().map(row).collect());
    }

    fn value(&mut self, value: &Value) {
        self.heading(3, &code(&value.pattern));
        if let Some(description) = value.metadata("description") {
            self.block(markdown(description));
        }
        self.block(facts::lines(value).into_iter().map(|(label, phrase)| {
            if phrase.0.is_empty() {
                format!("- {label}")
            } else {
                format!("- {label}: {}", phrase.markdown())
            }
        }));
    }
}

fn row(value: &Value) -> [String; 4] {
    [
        cell_code(&value.pattern),
        facts::type_of(value),
        cell_code(&facts::default(value)),
        value
            .metadata("description")
            .and_then(|text| text.lines().next())
            .map(markdown_inline)
            .unwrap_or_default(),
    ]
}

/// Inline code in a table, where a bar would end the cell even inside code.
fn cell_code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    code(text).replace('|', "\\|")
}
