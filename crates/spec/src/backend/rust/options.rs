//! The command line and the environment variables.

use super::Emitter;

impl Emitter<'_> {
    /// The function that makes the command line, where the specification has
    /// one or reads variables.
    pub(super) fn options(&mut self) {
        let environment = self.environment;
        if environment.options.entries().is_empty() && environment.options.commands().count() == 1 {
            return;
        }
        let (options, program) = (self.keys("Options"), self.keys("options::Program"));
        self.out.gap();
        self.doc([
            "The options, arguments, commands and variables that set these values.".to_owned(),
            String::new(),
            "# Panics".to_owned(),
            String::new(),
            "Never with the version of Milieu that generated this: it has checked them.".to_owned(),
        ]);
        self.out.line("#[allow(dead_code)]");
        self.out.line("#[must_use]");
        let parameter = format!("program: impl ::core::convert::Into<{program}>");
        let whole = format!("pub fn options({parameter}) -> {options} {{");
        // The longest line that rustfmt leaves as it is.
        if whole.len() <= 100 {
            self.out.open(whole);
        } else {
            self.out.open("pub fn options(");
            self.out.line(format!("{parameter},"));
            self.out.close(format!(") -> {options} {{"));
            self.out.indent();
        }
        let trait_ = self.context("Environment");
        self.out.line(format!(
            "let values = <Environment as {trait_}>::VALUES.iter();"
        ));
        self.out
            .line("let values = values.map(|value| (value.pattern, value.metadata));");
        self.out.line(format!("{options}::new(program, values)"));
        self.out
            .line("    .expect(\"the options were checked when this was generated\")");
        self.out.close("}");
    }
}
