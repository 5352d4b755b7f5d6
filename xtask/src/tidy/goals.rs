//! Every row of the file of goals is complete.

use super::{Finding, Repository};
use crate::goals;

pub fn check(repository: &Repository) -> Vec<Finding> {
    let parts = repository
        .packages
        .iter()
        .filter_map(|package| package.folder.rsplit('/').next().map(str::to_owned))
        .collect();
    let finding = |message| Finding {
        path: goals::FILE.to_owned(),
        line: 0,
        message,
    };
    match repository
        .files
        .iter()
        .find(|file| file.path == goals::FILE)
    {
        Some(file) => goals::check(&file.text, &parts)
            .into_iter()
            .map(finding)
            .collect(),
        None => vec![finding(
            "is missing; it states what the project claims".to_owned(),
        )],
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{repository, shown};
    use super::*;

    #[test]
    fn an_incomplete_row_and_a_missing_file_are_found() {
        let found = check(&repository(&[(
            "goals.toml",
            "[[goal]]\nname = \"read\"\n",
        )]));
        assert!(
            shown(&found).contains("goals.toml: read: `bound` is missing"),
            "{found:?}"
        );
        let found = check(&repository(&[]));
        assert!(shown(&found).contains("is missing"), "{found:?}");
    }
}
