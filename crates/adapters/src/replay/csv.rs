//! Rows of CSV files.

use std::io;
use std::sync::Arc;

use milieu_transfer::{Map, Value};

use super::column::Column;
use super::reader::{CsvReader, LENGTH_MAX, Read};
use super::rows::{Csv, Next, Recording};

/// Reads a file whose rows have a field for each column.
pub(super) struct Rows<R> {
    reader: CsvReader<R>,
    recording: Recording,
    declared: Vec<(String, Column)>,
    names: Option<Vec<String>>,
    columns: Vec<(Arc<str>, Column)>,
    time: usize,
}

impl<R: io::BufRead> Rows<R> {
    pub(super) fn new(input: R, recording: Recording, csv: &Csv) -> Rows<R> {
        Rows {
            reader: CsvReader::new(input, csv.separator),
            recording,
            declared: csv.columns.clone(),
            names: csv.names.clone(),
            columns: Vec::new(),
            time: 0,
        }
    }

    /// Finds out which columns there are. False: the file is empty.
    fn begin(&mut self) -> io::Result<bool> {
        let names = match (self.names.take(), &self.columns[..]) {
            (_, [_, ..]) => return Ok(true),
            (Some(names), []) => names,
            (None, []) => match self.reader.next()? {
                Read::Row(_, names) => names,
                Read::End => return Ok(false),
                Read::TooLong(_) => return Err(io::Error::other("its first row is too long")),
            },
        };
        let names: Vec<&str> = names.iter().map(|name| name.trim()).collect();
        let all = names.join("`, `");
        let known = |name: &str| names.iter().position(|known| *known == name);
        let missing = |name: &str| {
            let separator = self.reader.separator();
            io::Error::other(format!(
                "it has no column `{name}`; its columns, separated by `{separator}`, are `{all}`"
            ))
        };
        for (name, _) in &self.declared {
            known(name).ok_or_else(|| missing(name))?;
        }
        let time = &self.recording.time;
        self.time = known(time).ok_or_else(|| missing(time))?;
        let column = |(index, name): (usize, &&str)| {
            let declared = self.declared.iter().find(|(declared, _)| declared == name);
            let column = match declared {
                Some((_, column)) => *column,
                None if index == self.time => Column::Time(self.recording.format),
                None => Column::Guessed,
            };
            (Arc::from(*name), column)
        };
        self.columns = names.iter().enumerate().map(column).collect();
        Ok(true)
    }

    fn fields(&self, fields: &[String]) -> Result<Value, String> {
        if fields.len() != self.columns.len() {
            let (has, needs) = (fields.len(), self.columns.len());
            return Err(format!(
                "it has {has} fields, and there are {needs} columns"
            ));
        }
        let mut map = Map::default();
        for (field, (name, column)) in fields.iter().zip(&self.columns) {
            let value = column.value(field);
            let value = value.map_err(|why| format!("`{name}`: {why}"))?;
            map.set(Value::Text(Arc::clone(name)), value);
        }
        Ok(Value::from(map))
    }
}

impl<R: io::BufRead + Send> super::rows::Rows for Rows<R> {
    fn next(&mut self) -> io::Result<Next> {
        if !self.begin()? {
            return Ok(Next::End);
        }
        Ok(match self.reader.next()? {
            Read::Row(line, fields) => match self.fields(&fields) {
                Ok(value) => {
                    let name = &self.columns[self.time].0;
                    let time = self.recording.format.of_text(&fields[self.time]);
                    let time = time.map_err(|why| format!("`{name}`: {why}"));
                    self.recording.row(line, time, value)
                }
                Err(why) => Next::Bad(line, why),
            },
            Read::TooLong(line) => Next::Bad(
                line,
                format!("it is longer than {LENGTH_MAX} bytes; is a quote not closed?"),
            ),
            Read::End => Next::End,
        })
    }
}
