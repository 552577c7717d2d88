//! NumPy's file format, versions 1 to 3: one plain array of integers with three axes, nothing else.

use alloc::{format, vec::Vec};

use crate::routed_experts::{RoutingRefusal, Width};

const MAGIC: &[u8] = b"\x93NUMPY";
/// The longest header, as NumPy's own reader has it.
const MAX_HEADER: usize = 10_000;
/// Everything before the array: magic, version, length, header.
pub(super) const MAX_PREAMBLE: usize = 12 + MAX_HEADER;

/// Why a file is not a NumPy file of integers with three axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NpyRefusal {
    /// A NumPy file begins with its magic.
    #[error("not a NumPy file")]
    NotNpy,
    /// The format has versions 1, 2 and 3.
    #[error("NumPy format version {major}.{minor} is unknown")]
    Version {
        /// The first number.
        major: u8,
        /// The second number.
        minor: u8,
    },
    /// The file is as long as its header says it is, and the header no longer than NumPy reads.
    #[error("the header says it has {said} bytes")]
    HeaderLength {
        /// What it says.
        said: usize,
    },
    /// The header is a literal with `descr`, `fortran_order` and `shape`, each once, and nothing else.
    #[error("the header is malformed at its byte {at}")]
    Header {
        /// Where.
        at: usize,
    },
    /// The elements are plain integers of 1, 2, 4 or 8 bytes: no floats, no records, no objects.
    #[error("the elements are not plain integers")]
    NotIntegers,
    /// The array has three axes: tokens, layers, experts.
    #[error("the array has {axes} axes, not three")]
    Axes {
        /// How many.
        axes: usize,
    },
}

/// The type of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Element {
    bytes: usize,
    signed: bool,
    big_endian: bool,
}

impl Element {
    fn parse(descr: &[u8]) -> Option<Self> {
        let &[order, kind, size] = descr else { return None };
        let bytes = match size {
            b'1' | b'2' | b'4' | b'8' => usize::from(size - b'0'),
            _ => return None,
        };
        let big_endian = match order {
            b'<' => false,
            b'>' => true,
            b'|' if bytes == 1 => false,
            _ => return None,
        };
        let signed = match kind {
            b'i' => true,
            b'u' => false,
            _ => return None,
        };
        Some(Self { bytes, signed, big_endian })
    }

    pub(super) const fn bytes(self) -> usize {
        self.bytes
    }

    /// An element that has as many bytes as this type.
    fn read(self, bytes: &[u8]) -> Result<u16, OutOfRange> {
        let mut value = 0u64;
        for at in 0..bytes.len() {
            let byte = if self.big_endian { bytes[at] } else { bytes[bytes.len() - 1 - at] };
            value = value << 8 | u64::from(byte);
        }
        if self.signed && value >> (8 * self.bytes - 1) == 1 {
            return Err(OutOfRange::Negative);
        }
        u16::try_from(value).map_err(|_| OutOfRange::Above)
    }
}

/// Which end of the range an element is beyond.
#[derive(Clone, Copy, Debug)]
pub(super) enum OutOfRange {
    Negative,
    Above,
}

impl OutOfRange {
    pub(super) const fn at(self, index: usize) -> RoutingRefusal {
        match self {
            Self::Negative => RoutingRefusal::Negative { index },
            Self::Above => RoutingRefusal::AboveRange { index },
        }
    }
}

/// A file, read as far as its header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Array<'a> {
    pub(super) shape: [usize; 3],
    pub(super) element: Element,
    fortran_order: bool,
    pub(super) body: &'a [u8],
}

impl<'a> Array<'a> {
    pub(super) fn parse(file: &'a [u8]) -> Result<Self, NpyRefusal> {
        let rest = file.strip_prefix(MAGIC).ok_or(NpyRefusal::NotNpy)?;
        let (length, rest) = match *rest {
            [1, 0, a, b, ref rest @ ..] => (usize::from(u16::from_le_bytes([a, b])), rest),
            [2 | 3, 0, a, b, c, d, ref rest @ ..] => {
                (usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX), rest)
            }
            [1..=3, 0, ..] | [] | [_] => return Err(NpyRefusal::NotNpy),
            [major, minor, ..] => return Err(NpyRefusal::Version { major, minor }),
        };
        if length > MAX_HEADER || length > rest.len() {
            return Err(NpyRefusal::HeaderLength { said: length });
        }
        let (header, body) = rest.split_at(length);
        let header = Header::parse(header)?;
        Ok(Self { shape: header.shape, element: header.element, fortran_order: header.fortran_order, body })
    }

    /// Every id, the last axis fastest. The body has as many bytes as shape and type say.
    pub(super) fn ids(&self) -> impl Iterator<Item = Result<u16, OutOfRange>> {
        let [tokens, layers, places] = self.shape;
        let total = self.body.len() / self.element.bytes;
        (0..total).map(move |index| {
            let at = if self.fortran_order {
                let (token, layer, place) =
                    (index / (layers * places), index / places % layers, index % places);
                token + tokens * (layer + layers * place)
            } else {
                index
            };
            let bytes = self.body.get(at * self.element.bytes..).unwrap_or(&[]);
            self.element.read(bytes.get(..self.element.bytes).unwrap_or(&[]))
        })
    }
}

struct Header {
    shape: [usize; 3],
    element: Element,
    fortran_order: bool,
}

impl Header {
    fn parse(text: &[u8]) -> Result<Self, NpyRefusal> {
        let mut literal = Literal { text, at: 0 };
        let (mut element, mut fortran_order, mut shape) = (None, None, None);
        literal.expect(b'{')?;
        while !literal.accept(b'}') {
            literal.spaces();
            let at = literal.at;
            let fresh = match literal.string()? {
                b"descr" => {
                    literal.expect(b':')?;
                    let descr = literal.string().map_err(|_| NpyRefusal::NotIntegers)?;
                    element.replace(Element::parse(descr).ok_or(NpyRefusal::NotIntegers)?).is_none()
                }
                b"fortran_order" => {
                    literal.expect(b':')?;
                    fortran_order.replace(literal.boolean()?).is_none()
                }
                b"shape" => {
                    literal.expect(b':')?;
                    shape.replace(literal.axes()?).is_none()
                }
                _ => false,
            };
            if !fresh {
                return Err(NpyRefusal::Header { at });
            }
            if !literal.accept(b',') {
                literal.expect(b'}')?;
                break;
            }
        }
        literal.spaces();
        match (element, fortran_order, shape) {
            (Some(element), Some(fortran_order), Some(shape)) if literal.at == text.len() => {
                Ok(Self { shape, element, fortran_order })
            }
            _ => Err(literal.wrong()),
        }
    }
}

/// As much of Python's literals as a header has.
struct Literal<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Literal<'a> {
    const fn wrong(&self) -> NpyRefusal {
        NpyRefusal::Header { at: self.at }
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or(&[])
    }

    fn spaces(&mut self) {
        self.at += self.rest().iter().take_while(|byte| matches!(byte, b' ' | b'\n')).count();
    }

    fn accept(&mut self, byte: u8) -> bool {
        self.spaces();
        let there = self.rest().first() == Some(&byte);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, byte: u8) -> Result<(), NpyRefusal> {
        if self.accept(byte) { Ok(()) } else { Err(self.wrong()) }
    }

    fn string(&mut self) -> Result<&'a [u8], NpyRefusal> {
        let quote = if self.accept(b'\'') {
            b'\''
        } else {
            self.expect(b'"')?;
            b'"'
        };
        let rest = self.rest();
        let length = rest.iter().position(|&byte| byte == quote).ok_or(self.wrong())?;
        self.at += length + 1;
        Ok(&rest[..length])
    }

    fn boolean(&mut self) -> Result<bool, NpyRefusal> {
        self.spaces();
        for (word, value) in [(&b"True"[..], true), (&b"False"[..], false)] {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.wrong())
    }

    fn axes(&mut self) -> Result<[usize; 3], NpyRefusal> {
        let mut shape = [0; 3];
        let mut axes = 0;
        self.expect(b'(')?;
        while !self.accept(b')') {
            let axis = self.number()?;
            if let Some(place) = shape.get_mut(axes) {
                *place = axis;
            }
            axes += 1;
            if !self.accept(b',') {
                self.expect(b')')?;
                break;
            }
        }
        if axes == 3 { Ok(shape) } else { Err(NpyRefusal::Axes { axes }) }
    }

    fn number(&mut self) -> Result<usize, NpyRefusal> {
        self.spaces();
        let digits = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut number = 0usize;
        for &digit in &self.rest()[..digits] {
            let next = number.checked_mul(10).and_then(|tens| tens.checked_add(usize::from(digit - b'0')));
            number = next.ok_or(self.wrong())?;
        }
        self.at += digits;
        if digits == 0 { Err(self.wrong()) } else { Ok(number) }
    }
}

/// The file that `numpy.save` writes for the array: version 1, header padded to 64 bytes, with room
/// for the first axis to grow to 21 digits.
pub(super) fn write(shape: [usize; 3], width: Width, data: &[u8]) -> Vec<u8> {
    const PREFIX: usize = 10;
    const GROWTH: usize = 21;
    let [tokens, layers, places] = shape;
    let descr = match width {
        Width::Uint8 => "|u1",
        Width::Uint16 => "<u2",
    };
    let first = format!("{tokens}");
    let literal = format!(
        "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({first}, {layers}, {places}), }}{:room$}",
        "",
        room = GROWTH.saturating_sub(first.len())
    );
    // The newline counts; three numbers of 20 digits keep this below one and a half hundred bytes.
    let length = (PREFIX + literal.len() + 1).next_multiple_of(64) - PREFIX;
    let mut file = Vec::with_capacity(PREFIX + length + data.len());
    file.extend_from_slice(MAGIC);
    file.extend_from_slice(&[1, 0]);
    file.extend_from_slice(&u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes());
    file.extend_from_slice(literal.as_bytes());
    file.resize(PREFIX + length - 1, b' ');
    file.push(b'\n');
    file.extend_from_slice(data);
    file
}
