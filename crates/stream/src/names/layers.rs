//! The values of layers where a subscriber is.

use std::collections::BTreeMap;

/// Layers with their values, as one subscriber has them. A layer that is not
/// among them, or whose value is empty, is inactive.
///
/// ```
/// use milieu_stream::names::LayerValues;
///
/// let layers = LayerValues::from_iter([("room", "005")]);
/// assert_eq!(layers.get("room"), Some("005"));
/// assert_eq!(layers.get("session"), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayerValues(BTreeMap<Box<str>, Box<str>>);

impl LayerValues {
    /// No layer is active.
    #[must_use]
    pub const fn new() -> LayerValues {
        LayerValues(BTreeMap::new())
    }

    /// The value of a layer, if it is active.
    #[must_use]
    pub fn get(&self, layer: &str) -> Option<&str> {
        self.0.get(layer).map(|value| &**value)
    }

    /// Activates a layer, or deactivates it with an empty value.
    pub fn set(&mut self, layer: &str, value: &str) {
        if value.is_empty() {
            self.0.remove(layer);
        } else {
            self.0.insert(layer.into(), value.into());
        }
    }
}

impl<L: AsRef<str>, V: AsRef<str>> FromIterator<(L, V)> for LayerValues {
    fn from_iter<I: IntoIterator<Item = (L, V)>>(values: I) -> LayerValues {
        let mut layers = LayerValues::new();
        for (layer, value) in values {
            layers.set(layer.as_ref(), value.as_ref());
        }
        layers
    }
}
