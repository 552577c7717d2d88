//! Routed experts of a mixture-of-experts model: which experts served which token in which layer.
//!
//! vLLM sends the base64 of a NumPy file, Prime and Dynamo a compact object with the base64 of the
//! raw bytes and a shape. Both are read with their bounds checked before anything is allocated, and
//! written again. A NumPy file with objects in it is refused by its type; nothing is ever unpickled.

mod base64;
mod npy;
mod splice;

use alloc::{borrow::Cow, string::String, vec::Vec};

pub use npy::NpyRefusal;
use serde::{Deserialize, Serialize};
pub use splice::{ConvertRefusal, Form, convert};

use crate::{NotBase64, decode_base64};

/// The type of the ids in the compact form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Width {
    /// One byte an id.
    Uint8,
    /// Two bytes an id, the lower first.
    Uint16,
}

impl Width {
    /// Bytes of one id.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Uint8 => 1,
            Self::Uint16 => 2,
        }
    }

    const fn of(max: u16) -> Self {
        if max > 0xff { Self::Uint16 } else { Self::Uint8 }
    }
}

/// The compact form, as Prime and Dynamo send it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compact<'a> {
    /// Base64 of the ids, the last axis fastest.
    #[serde(borrow)]
    pub data: Cow<'a, str>,
    /// Tokens, layers, experts of one token in one layer.
    pub shape: [usize; 3],
    /// The position in the prompt of the first token.
    #[serde(default)]
    pub start: usize,
    /// The type of the ids.
    pub dtype: Width,
}

/// Why something is not the routing of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoutingRefusal {
    /// The data is base64.
    #[error(transparent)]
    Base64(#[from] NotBase64),
    /// The NumPy file is one of a plain array of integers.
    #[error(transparent)]
    Npy(#[from] NpyRefusal),
    /// The data has as many bytes as its shape and type say.
    #[error("the data holds {got} bytes, its shape and type say {expected}")]
    Length {
        /// Bytes that shape and type say.
        expected: usize,
        /// Bytes that are there.
        got: usize,
    },
    /// The data stays under the caller's cap.
    #[error("the data is larger than {max} bytes")]
    TooLarge {
        /// The cap.
        max: usize,
    },
    /// Layers and experts of a token are at least one.
    #[error("the shape has no layers or no experts")]
    EmptyAxis,
    /// An expert has an id from 0.
    #[error("the id at {index} is negative")]
    Negative {
        /// Its position among all ids, the last axis fastest.
        index: usize,
    },
    /// An expert's id fits in 16 bits.
    #[error("the id at {index} is above 65535")]
    AboveRange {
        /// Its position among all ids, the last axis fastest.
        index: usize,
    },
}

/// How many of a sample's tokens have their routing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// Every token from the start on.
    All,
    /// Every token but the last sampled one, which was never computed on.
    AllButLast,
}

/// Rows and tokens do not fit: nothing is cut and nothing is padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rows} rows from token {start} on do not fit {tokens} tokens")]
pub struct RowsMismatch {
    /// Rows that are there.
    pub rows: usize,
    /// The first token that they are for.
    pub start: usize,
    /// Prompt and completion together.
    pub tokens: usize,
}

/// Expert ids by token, layer and place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutedExperts {
    shape: [usize; 3],
    start: usize,
    width: Width,
    data: Vec<u8>,
}

/// Ids that a shape has, with both factors that may not be zero checked.
fn ids(shape: [usize; 3]) -> Result<Option<usize>, RoutingRefusal> {
    let [tokens, layers, places] = shape;
    if layers == 0 || places == 0 {
        return Err(RoutingRefusal::EmptyAxis);
    }
    Ok(tokens.checked_mul(layers).and_then(|rows| rows.checked_mul(places)))
}

impl RoutedExperts {
    /// Reads the compact form.
    ///
    /// # Errors
    ///
    /// A [`RoutingRefusal`], before anything is allocated.
    pub fn from_compact(compact: &Compact<'_>, max_bytes: usize) -> Result<Self, RoutingRefusal> {
        let too_large = RoutingRefusal::TooLarge { max: max_bytes };
        let expected = ids(compact.shape)?
            .and_then(|ids| ids.checked_mul(compact.dtype.bytes()))
            .filter(|&bytes| bytes <= max_bytes)
            .ok_or(too_large)?;
        let got = base64::decoded_length(&compact.data);
        if got != expected {
            return Err(RoutingRefusal::Length { expected, got });
        }
        let data = decode_base64(compact.data.as_bytes())?;
        Ok(Self { shape: compact.shape, start: compact.start, width: compact.dtype, data })
    }

    /// Reads the base64 of a NumPy file whose first row is for the token at `start`.
    ///
    /// # Errors
    ///
    /// A [`RoutingRefusal`].
    pub fn from_npy_base64(text: &str, start: usize, max_bytes: usize) -> Result<Self, RoutingRefusal> {
        if base64::decoded_length(text) > max_bytes.saturating_add(npy::MAX_PREAMBLE) {
            return Err(RoutingRefusal::TooLarge { max: max_bytes });
        }
        Self::from_npy(&decode_base64(text.as_bytes())?, start, max_bytes)
    }

    /// Reads a NumPy file whose first row is for the token at `start`. Ids take one byte each unless
    /// one of them needs two.
    ///
    /// # Errors
    ///
    /// A [`RoutingRefusal`].
    pub fn from_npy(file: &[u8], start: usize, max_bytes: usize) -> Result<Self, RoutingRefusal> {
        let array = npy::Array::parse(file)?;
        let too_large = RoutingRefusal::TooLarge { max: max_bytes };
        let ids = ids(array.shape)?;
        let expected = ids.and_then(|ids| ids.checked_mul(array.element.bytes())).ok_or(too_large)?;
        if expected > max_bytes {
            return Err(too_large);
        }
        if array.body.len() != expected {
            return Err(RoutingRefusal::Length { expected, got: array.body.len() });
        }
        let mut max = 0;
        for (index, id) in array.ids().enumerate() {
            let id = id.map_err(|sign| sign.at(index))?;
            max = max.max(id);
        }
        let width = Width::of(max);
        let mut data = Vec::with_capacity(ids.unwrap_or(0) * width.bytes());
        // All in range: the pass above ended.
        for id in array.ids().flatten() {
            data.extend_from_slice(&id.to_le_bytes()[..width.bytes()]);
        }
        Ok(Self { shape: array.shape, start, width, data })
    }

    /// The compact form.
    #[must_use]
    pub fn to_compact(&self) -> Compact<'static> {
        let data = Cow::Owned(base64::encode(&self.data));
        Compact { data, shape: self.shape, start: self.start, dtype: self.width }
    }

    /// A NumPy file, byte for byte as `numpy.save` writes the same array.
    #[must_use]
    pub fn to_npy(&self) -> Vec<u8> {
        npy::write(self.shape, self.width, &self.data)
    }

    /// The base64 of [`to_npy`](Self::to_npy), which is how vLLM sends it.
    #[must_use]
    pub fn to_npy_base64(&self) -> String {
        base64::encode(&self.to_npy())
    }

    /// Tokens, layers, experts of one token in one layer.
    #[must_use]
    pub const fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// The position of the first row's token in the prompt.
    #[must_use]
    pub const fn start(&self) -> usize {
        self.start
    }

    /// The expert at a row, a layer and a place.
    #[must_use]
    pub fn expert(&self, row: usize, layer: usize, place: usize) -> Option<u16> {
        let [rows, layers, places] = self.shape;
        if row >= rows || layer >= layers || place >= places {
            return None;
        }
        // Below the length of `data`, which is in memory.
        let at = ((row * layers + layer) * places + place) * self.width.bytes();
        match self.width {
            Width::Uint8 => self.data.get(at).map(|&id| u16::from(id)),
            Width::Uint16 => Some(u16::from_le_bytes([*self.data.get(at)?, *self.data.get(at + 1)?])),
        }
    }

    /// The greatest id, to hold against the model's number of experts. Nothing without rows.
    #[must_use]
    pub fn max_expert(&self) -> Option<u16> {
        match self.width {
            Width::Uint8 => self.data.iter().max().map(|&id| u16::from(id)),
            Width::Uint16 => self.data.chunks_exact(2).map(|id| u16::from_le_bytes([id[0], id[1]])).max(),
        }
    }

    /// Whether the rows are those of a sample's tokens.
    ///
    /// # Errors
    ///
    /// [`RowsMismatch`]: a trainer that cuts or pads would pair tokens with other tokens' experts.
    pub fn covers(&self, prompt: usize, completion: usize) -> Result<Coverage, RowsMismatch> {
        let [rows, ..] = self.shape;
        let tokens = prompt.saturating_add(completion);
        match self.start.checked_add(rows).and_then(|end| tokens.checked_sub(end)) {
            Some(0) => Ok(Coverage::All),
            Some(1) if completion > 0 => Ok(Coverage::AllButLast),
            _ => Err(RowsMismatch { rows, start: self.start, tokens }),
        }
    }
}
