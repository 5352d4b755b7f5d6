//! The schema of the XML language, for the operators of a catalogue.

use std::fmt::Write;

use super::super::sinks::{SINKS, Sink};
use super::NAMESPACE;
use crate::catalogue::{Catalogue, Declared, Definition, Kind};

/// Types that do not depend on the catalogue.
const TYPES: &str = r#"
  <xs:simpleType name="name">
    <xs:annotation><xs:documentation>A name of the naming tree.</xs:documentation></xs:annotation>
    <xs:restriction base="xs:string"><xs:pattern value="/(.|\n|\r)*"/></xs:restriction>
  </xs:simpleType>
  <xs:simpleType name="word">
    <xs:annotation><xs:documentation>What a flow is called within the document.</xs:documentation></xs:annotation>
    <xs:restriction base="xs:string"><xs:pattern value="[A-Za-z_][A-Za-z0-9_]*"/></xs:restriction>
  </xs:simpleType>
  <xs:simpleType name="flag">
    <xs:restriction base="xs:token"><xs:enumeration value="true"/><xs:enumeration value="false"/></xs:restriction>
  </xs:simpleType>
  <xs:simpleType name="duration">
    <xs:annotation><xs:documentation>A distance in time: 10m, 1h30m, 250ms, 1.5s, 2d.</xs:documentation></xs:annotation>
    <xs:restriction base="xs:token"><xs:pattern value="-?([0-9]+(\.[0-9]+)?(d|h|m|s|ms|us|µs|ns))+"/></xs:restriction>
  </xs:simpleType>
  <xs:simpleType name="expression">
    <xs:annotation><xs:documentation>An expression over an event, or $name of a function.</xs:documentation></xs:annotation>
    <xs:restriction base="xs:string"><xs:pattern value="(.|\n|\r)*\S(.|\n|\r)*"/></xs:restriction>
  </xs:simpleType>
  <xs:complexType name="fields" mixed="true">
    <xs:annotation><xs:documentation>Fields and the expressions that they become, or an expression that becomes the whole.</xs:documentation></xs:annotation>
    <xs:sequence>
      <xs:element name="field" minOccurs="0" maxOccurs="unbounded">
        <xs:complexType>
          <xs:simpleContent>
            <xs:extension base="s:expression"><xs:attribute name="name" type="xs:string" use="required"/></xs:extension>
          </xs:simpleContent>
        </xs:complexType>
      </xs:element>
    </xs:sequence>
  </xs:complexType>
  <xs:complexType name="stream">
    <xs:annotation><xs:documentation>The events of a name, of names with wildcards, or of one that follows a layer.</xs:documentation></xs:annotation>
    <xs:attribute name="name" type="s:name" use="required"/>
  </xs:complexType>
  <xs:complexType name="use">
    <xs:annotation><xs:documentation>A flow that has a name above.</xs:documentation></xs:annotation>
    <xs:attribute name="flow" type="s:word" use="required"/>
  </xs:complexType>
  <xs:complexType name="flow">
    <xs:annotation><xs:documentation>Inputs, and operators that they run through one after the other.</xs:documentation></xs:annotation>
    <xs:sequence>
      <xs:choice maxOccurs="unbounded">
        <xs:element name="stream" type="s:stream"/>
        <xs:element name="use" type="s:use"/>
        <xs:element name="flow" type="s:flow"/>
      </xs:choice>
      <xs:group ref="s:operator" minOccurs="0" maxOccurs="unbounded"/>
    </xs:sequence>
  </xs:complexType>
"#;

/// The schema, as XML Schema 1.0.
pub(in super::super) fn schema(catalogue: &Catalogue) -> String {
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" xmlns:s=\"{NAMESPACE}\"\n    \
         targetNamespace=\"{NAMESPACE}\" elementFormDefault=\"qualified\">\n"
    );
    out.push_str(
        "  <xs:element name=\"subscriptions\">\n    <xs:complexType>\n      \
         <xs:choice minOccurs=\"0\" maxOccurs=\"unbounded\">\n",
    );
    for word in ["let"]
        .into_iter()
        .chain(SINKS.iter().map(|sink| sink.word))
    {
        let _ = writeln!(
            out,
            "        <xs:element name=\"{word}\" type=\"s:{word}\"/>"
        );
    }
    out.push_str("      </xs:choice>\n    </xs:complexType>\n");
    // What a validator can say of names within the document.
    out.push_str(
        "    <xs:key name=\"flows\"><xs:selector xpath=\"s:let\"/><xs:field xpath=\"@name\"/></xs:key>\n    \
         <xs:keyref name=\"uses\" refer=\"s:flows\"><xs:selector xpath=\".//s:use\"/><xs:field xpath=\"@flow\"/></xs:keyref>\n  \
         </xs:element>\n",
    );
    out.push_str(TYPES);
    out.push_str(
        "  <xs:complexType name=\"let\">\n    \
         <xs:annotation><xs:documentation>Gives a flow a name within the document.</xs:documentation></xs:annotation>\n    \
         <xs:complexContent><xs:extension base=\"s:flow\">\
         <xs:attribute name=\"name\" type=\"s:word\" use=\"required\"/>\
         </xs:extension></xs:complexContent>\n  </xs:complexType>\n",
    );
    for sink in &SINKS {
        sink_type(&mut out, sink);
    }
    out.push_str("  <xs:group name=\"operator\">\n    <xs:choice>\n");
    for definition in catalogue.iter() {
        operator(&mut out, definition);
    }
    out.push_str("    </xs:choice>\n  </xs:group>\n</xs:schema>\n");
    out
}

fn sink_type(out: &mut String, sink: &Sink) {
    let _ = writeln!(out, "  <xs:complexType name=\"{}\">", sink.word);
    documentation(out, 4, sink.summary);
    out.push_str("    <xs:complexContent>\n      <xs:extension base=\"s:flow\">\n");
    for declared in sink.parameters {
        attribute(out, 8, declared, declared.default.is_none());
    }
    out.push_str("      </xs:extension>\n    </xs:complexContent>\n  </xs:complexType>\n");
}

fn operator(out: &mut String, definition: &Definition) {
    let _ = writeln!(out, "      <xs:element name=\"{}\">", definition.name);
    documentation(out, 8, definition.summary);
    let may_be_element = |kind| matches!(kind, Kind::Expression | Kind::Fields);
    let elements = definition.parameters.iter();
    let elements = elements.filter(|declared| may_be_element(declared.kind));
    out.push_str("        <xs:complexType>\n");
    if elements.clone().count() > 0 {
        out.push_str("          <xs:all>\n");
        for declared in elements {
            let kind = match declared.kind {
                Kind::Fields => "fields",
                _ => "expression",
            };
            let _ = writeln!(
                out,
                "            <xs:element name=\"{}\" type=\"s:{kind}\" minOccurs=\"0\"/>",
                declared.name
            );
        }
        out.push_str("          </xs:all>\n");
    }
    for declared in definition.parameters {
        let is_required = declared.default.is_none() && !may_be_element(declared.kind);
        attribute(out, 10, declared, is_required);
    }
    out.push_str("        </xs:complexType>\n      </xs:element>\n");
}

fn attribute(out: &mut String, depth: usize, declared: &Declared, is_required: bool) {
    let _ = write!(out, "{:depth$}<xs:attribute name=\"{}\"", "", declared.name);
    let named = match declared.kind {
        Kind::Flag => Some("s:flag"),
        Kind::Integer => Some("xs:long"),
        Kind::Number => Some("xs:double"),
        Kind::Span => Some("s:duration"),
        Kind::Text => Some("xs:string"),
        Kind::Expression | Kind::Fields => Some("s:expression"),
        Kind::Choice(_) | Kind::Functions(_) => None,
    };
    if let Some(named) = named {
        let _ = write!(out, " type=\"{named}\"");
    }
    if is_required {
        out.push_str(" use=\"required\"");
    }
    out.push_str(">\n");
    documentation(out, depth + 2, declared.summary);
    match declared.kind {
        Kind::Choice(words) => {
            let values = words
                .iter()
                .map(|word| format!("<xs:enumeration value=\"{word}\"/>"));
            restriction(out, depth + 2, &values.collect::<String>());
        }
        Kind::Functions(known) => {
            let one = format!("({})(\\([^()]*\\))?", known.join("|"));
            let pattern = format!("<xs:pattern value=\"\\s*{one}(\\s*,\\s*{one})*\\s*\"/>");
            restriction(out, depth + 2, &pattern);
        }
        _ => {}
    }
    let _ = writeln!(out, "{:depth$}</xs:attribute>", "");
}

fn restriction(out: &mut String, depth: usize, inside: &str) {
    let _ = writeln!(
        out,
        "{:depth$}<xs:simpleType><xs:restriction base=\"xs:token\">{inside}</xs:restriction></xs:simpleType>",
        ""
    );
}

fn documentation(out: &mut String, depth: usize, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        out,
        "{:depth$}<xs:annotation><xs:documentation>{text}</xs:documentation></xs:annotation>",
        ""
    );
}
