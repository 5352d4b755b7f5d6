//! Charts as PNG, drawn from the SVG.
//!
//! The font comes along, so that a picture is the same on every machine, one
//! without fonts too. What is drawn is the SVG that this crate writes: it refers
//! to no file, and none is read. Its texts become outlines first: shaping text as
//! all scripts want it would double what all of this takes.

use std::fmt::Write;

use ::png::{BitDepth, ColorType, Encoder, PixelDimensions, Unit};
use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{self, Tree};
use roxmltree::{Document, Node};
use ttf_parser::{Face, OutlineBuilder};

use super::super::Picture;

/// Larger pictures are taken for a mistake.
const PIXELS_MAX: f64 = 50e6;

/// The picture, with its size on paper and what it says of itself.
pub(super) fn of(svg: &str, picture: &Picture, about: &str) -> Result<Vec<u8>, String> {
    let options = usvg::Options {
        // Points are the pixels of a tree, and a scale makes them ours.
        dpi: 72.0,
        ..usvg::Options::default()
    };
    let wrong = |error: &dyn std::fmt::Display| format!("the chart cannot be drawn: {error}");
    let svg = outlined(svg).map_err(|error| wrong(&error))?;
    let tree = Tree::from_str(&svg, &options).map_err(|error| wrong(&error))?;
    let scale = picture.dots_per_inch / 72.0;
    let size = tree.size();
    let (width, height) = (
        f64::from(size.width()) * scale,
        f64::from(size.height()) * scale,
    );
    if !(scale > 0.0 && width * height <= PIXELS_MAX) {
        return Err(format!(
            "a picture of {width:.0} × {height:.0} pixels; ask for fewer dots with --dpi"
        ));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "few enough pixels"
    )]
    let (columns, rows) = (width.ceil().max(1.0) as u32, height.ceil().max(1.0) as u32);
    let mut pixels = Pixmap::new(columns, rows).ok_or("there is no memory for the picture")?;
    // The last column and row are whole, too.
    pixels.fill(Color::WHITE);
    #[expect(clippy::cast_possible_truncation, reason = "a resolution")]
    let transform = Transform::from_scale(scale as f32, scale as f32);
    resvg::render(&tree, transform, &mut pixels.as_mut());
    // Nothing shines through: three of four bytes are the colour.
    let colours = pixels.data().chunks_exact(4);
    let colours: Vec<u8> = colours.flat_map(|pixel| pixel[..3].to_vec()).collect();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a resolution"
    )]
    let per_metre = (picture.dots_per_inch / 0.0254).round() as u32;
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, columns, rows);
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_pixel_dims(Some(PixelDimensions {
        xppu: per_metre,
        yppu: per_metre,
        unit: Unit::Meter,
    }));
    let described = encoder.add_itxt_chunk("Description".into(), about.to_owned());
    described.map_err(|error| wrong(&error))?;
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(&colours)?;
        writer.finish()
    });
    written.map_err(|error| wrong(&error))?;
    Ok(out)
}

/// The picture with outlines in the place of its texts.
fn outlined(svg: &str) -> Result<String, String> {
    let document = Document::parse(svg).map_err(|error| error.to_string())?;
    let face = Face::parse(dejavu::sans::regular(), 0).map_err(|error| error.to_string())?;
    let mut out = String::with_capacity(svg.len() * 4);
    let mut done = 0;
    let texts = document.descendants();
    for text in texts.filter(|node| node.has_tag_name("text")) {
        let range = text.range();
        out.push_str(&svg[done..range.start]);
        outline(&mut out, &face, &text);
        done = range.end;
    }
    out.push_str(&svg[done..]);
    Ok(out)
}

fn outline(out: &mut String, face: &Face, text: &Node) {
    let number = |name| {
        let value = text.attribute(name).and_then(|value| value.parse().ok());
        value.unwrap_or(0.0_f32)
    };
    let unit = number("font-size") / f32::from(face.units_per_em());
    let content = text.text().unwrap_or_default();
    // The first glyph is drawn for what the font does not have.
    let glyphs = content
        .chars()
        .map(|c| face.glyph_index(c).unwrap_or_default());
    let glyphs: Vec<_> = glyphs
        .map(|glyph| {
            (
                glyph,
                f32::from(face.glyph_hor_advance(glyph).unwrap_or(0)) * unit,
            )
        })
        .collect();
    let width: f32 = glyphs.iter().map(|(_, advance)| advance).sum();
    let mut pen = Pen {
        path: String::new(),
        x: number("x")
            - match text.attribute("text-anchor") {
                Some("middle") => width / 2.0,
                Some("end") => width,
                _ => 0.0,
            },
        y: number("y"),
        unit,
    };
    for (glyph, advance) in glyphs {
        face.outline_glyph(glyph, &mut pen);
        pen.x += advance;
    }
    let turn = text.attribute("transform").unwrap_or_default();
    // Writing to a string does not fail.
    let _ = write!(out, "<path d=\"{}\" transform=\"{turn}\"/>", pen.path);
}

/// Draws glyphs, which stand on their heads for SVG.
struct Pen {
    path: String,
    x: f32,
    y: f32,
    unit: f32,
}

impl Pen {
    fn draw(&mut self, command: char, points: &[(f32, f32)]) {
        self.path.push(command);
        for (x, y) in points {
            let (x, y) = (self.x + x * self.unit, self.y - y * self.unit);
            let _ = write!(self.path, "{x:.3} {y:.3} ");
        }
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.draw('M', &[(x, y)]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.draw('L', &[(x, y)]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.draw('Q', &[(x1, y1), (x, y)]);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.draw('C', &[(x1, y1), (x2, y2), (x, y)]);
    }

    fn close(&mut self) {
        self.path.push('Z');
    }
}
