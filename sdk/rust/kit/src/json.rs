//! JSON values, with all digits of 64-bit integers.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::ops::Index;

/// A JSON value. Made by the macro [`json!`](crate::json!) or read by [`Json::parse`].
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    /// A number without a fraction that fits.
    Int(i64),
    Float(f64),
    String(String),
    Array(Vec<Json>),
    /// In the order of the text.
    Object(Vec<(String, Json)>),
}

const NULL: Json = Json::Null;

impl Json {
    /// Reads a text that holds one value.
    pub fn parse(text: &str) -> Result<Json, JsonError> {
        let mut reader = Reader { text, at: 0, depth: 0 };
        let value = reader.value()?;
        reader.blank();
        match reader.peek() {
            None => Ok(value),
            Some(_) => Err(reader.error("something follows the value")),
        }
    }

    /// The member of an object; None when it is absent or this is no object.
    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        *self == Json::Null
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Json::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Json::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// Any number; large integers are rounded.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Json::Int(number) => Some(*number as f64),
            Json::Float(number) => Some(*number),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Json::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The items of an array; none for any other value.
    pub fn items(&self) -> &[Json] {
        match self {
            Json::Array(items) => items,
            _ => &[],
        }
    }

    /// The members of an object; none for any other value.
    pub fn members(&self) -> &[(String, Json)] {
        match self {
            Json::Object(members) => members,
            _ => &[],
        }
    }

    /// Takes a member out of an object; null when it is absent.
    pub(crate) fn take(&mut self, name: &str) -> Json {
        match self {
            Json::Object(members) => match members.iter_mut().rev().find(|(key, _)| key == name) {
                Some((_, value)) => std::mem::replace(value, Json::Null),
                None => Json::Null,
            },
            _ => Json::Null,
        }
    }

    /// The text of a string; empty for any other value.
    pub(crate) fn into_text(self) -> String {
        match self {
            Json::String(text) => text,
            _ => String::new(),
        }
    }

    /// The members of an object whose values are lists of texts.
    pub(crate) fn into_lists(self) -> BTreeMap<String, Vec<String>> {
        match self {
            Json::Object(members) => members
                .into_iter()
                .map(|(key, value)| (key, value.items().iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()))
                .collect(),
            _ => BTreeMap::new(),
        }
    }

    /// The members of an object whose values are texts.
    pub(crate) fn into_texts(self) -> BTreeMap<String, String> {
        match self {
            Json::Object(members) => members.into_iter().map(|(key, value)| (key, value.into_text())).collect(),
            _ => BTreeMap::new(),
        }
    }
}

/// `value["name"]`: null when it is absent.
impl Index<&str> for Json {
    type Output = Json;
    fn index(&self, name: &str) -> &Json {
        self.get(name).unwrap_or(&NULL)
    }
}

/// `value[0]`: null when it is absent.
impl Index<usize> for Json {
    type Output = Json;
    fn index(&self, k: usize) -> &Json {
        self.items().get(k).unwrap_or(&NULL)
    }
}

// ---------- writing ----------

fn write_text(text: &str, out: &mut impl Write) -> fmt::Result {
    out.write_char('"')?;
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..=31 => "",
            _ => continue,
        };
        out.write_str(&text[from..at])?;
        if escape.is_empty() {
            write!(out, "\\u{byte:04x}")?;
        } else {
            out.write_str(escape)?;
        }
        from = at + 1;
    }
    out.write_str(&text[from..])?;
    out.write_char('"')
}

/// As compact JSON text.
impl fmt::Display for Json {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => out.write_str("null"),
            Json::Bool(value) => write!(out, "{value}"),
            Json::Int(number) => write!(out, "{number}"),
            // JSON has no NaN and no infinities; JavaScript writes null too.
            Json::Float(number) if !number.is_finite() => out.write_str("null"),
            Json::Float(number) => write!(out, "{number:?}"),
            Json::String(text) => write_text(text, out),
            Json::Array(items) => {
                out.write_char('[')?;
                for (k, item) in items.iter().enumerate() {
                    if k > 0 {
                        out.write_char(',')?;
                    }
                    item.fmt(out)?;
                }
                out.write_char(']')
            }
            Json::Object(members) => {
                out.write_char('{')?;
                for (k, (key, value)) in members.iter().enumerate() {
                    if k > 0 {
                        out.write_char(',')?;
                    }
                    write_text(key, out)?;
                    out.write_char(':')?;
                    value.fmt(out)?;
                }
                out.write_char('}')
            }
        }
    }
}

macro_rules! from {
    ($($type:ty, $value:ident => $json:expr;)*) => {
        $(impl From<$type> for Json {
            fn from($value: $type) -> Json {
                $json
            }
        })*
    };
}

from! {
    bool, value => Json::Bool(value);
    u8, value => Json::Int(value.into());
    u16, value => Json::Int(value.into());
    i32, value => Json::Int(value.into());
    f32, value => Json::Float(value.into());
    u32, value => Json::Int(value.into());
    i64, value => Json::Int(value);
    usize, value => Json::Int(value as i64);
    f64, value => Json::Float(value);
    &str, value => Json::String(value.to_owned());
    String, value => Json::String(value);
    &String, value => Json::String(value.clone());
    &Json, value => value.clone();
}

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Json {
        value.map_or(Json::Null, Into::into)
    }
}

impl<T: Into<Json>> From<Vec<T>> for Json {
    fn from(items: Vec<T>) -> Json {
        Json::Array(items.into_iter().map(Into::into).collect())
    }
}

impl<T: Clone + Into<Json>> From<&[T]> for Json {
    fn from(items: &[T]) -> Json {
        Json::Array(items.iter().cloned().map(Into::into).collect())
    }
}

impl<T: Into<Json>> From<BTreeMap<String, T>> for Json {
    fn from(members: BTreeMap<String, T>) -> Json {
        Json::Object(members.into_iter().map(|(key, value)| (key, value.into())).collect())
    }
}

impl<T: Clone + Into<Json>> From<&BTreeMap<String, T>> for Json {
    fn from(members: &BTreeMap<String, T>) -> Json {
        members.clone().into()
    }
}

/// Writes a JSON value as JSON is written: `json!({ "name": name, "tags": [1, null, { "more": true }] })`.
#[macro_export]
macro_rules! json {
    (null) => { $crate::Json::Null };
    ([ $($items:tt)* ]) => {{
        #[allow(unused_mut)]
        let mut items: Vec<$crate::Json> = Vec::new();
        $crate::json_items!(items $($items)*);
        $crate::Json::Array(items)
    }};
    ({ $($members:tt)* }) => {{
        #[allow(unused_mut)]
        let mut members: Vec<(String, $crate::Json)> = Vec::new();
        $crate::json_members!(members $($members)*);
        $crate::Json::Object(members)
    }};
    ($value:expr) => { $crate::Json::from($value) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! json_items {
    ($to:ident) => {};
    ($to:ident null $(, $($rest:tt)*)?) => {
        $to.push($crate::Json::Null);
        $crate::json_items!($to $($($rest)*)?);
    };
    ($to:ident [ $($value:tt)* ] $(, $($rest:tt)*)?) => {
        $to.push($crate::json!([ $($value)* ]));
        $crate::json_items!($to $($($rest)*)?);
    };
    ($to:ident { $($value:tt)* } $(, $($rest:tt)*)?) => {
        $to.push($crate::json!({ $($value)* }));
        $crate::json_items!($to $($($rest)*)?);
    };
    ($to:ident $value:expr $(, $($rest:tt)*)?) => {
        $to.push($crate::Json::from($value));
        $crate::json_items!($to $($($rest)*)?);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! json_members {
    ($to:ident) => {};
    ($to:ident $key:tt : null $(, $($rest:tt)*)?) => {
        $to.push((String::from($key), $crate::Json::Null));
        $crate::json_members!($to $($($rest)*)?);
    };
    ($to:ident $key:tt : [ $($value:tt)* ] $(, $($rest:tt)*)?) => {
        $to.push((String::from($key), $crate::json!([ $($value)* ])));
        $crate::json_members!($to $($($rest)*)?);
    };
    ($to:ident $key:tt : { $($value:tt)* } $(, $($rest:tt)*)?) => {
        $to.push((String::from($key), $crate::json!({ $($value)* })));
        $crate::json_members!($to $($($rest)*)?);
    };
    ($to:ident $key:tt : $value:expr $(, $($rest:tt)*)?) => {
        $to.push((String::from($key), $crate::Json::from($value)));
        $crate::json_members!($to $($($rest)*)?);
    };
}

// ---------- reading ----------

/// A text that is not JSON, with the byte at which that was noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    pub at: usize,
    pub what: &'static str,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not JSON: {} at byte {}", self.what, self.at)
    }
}

impl std::error::Error for JsonError {}

/// Deeper values would use up the stack.
const DEPTH_MAX: usize = 128;

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn error(&self, what: &'static str) -> JsonError {
        JsonError { at: self.at, what }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json, JsonError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.error("a value is wanted"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn value(&mut self) -> Result<Json, JsonError> {
        self.blank();
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => Ok(Json::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => Err(self.error("a value is wanted")),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Json, JsonError>) -> Result<Json, JsonError> {
        if self.depth == DEPTH_MAX {
            return Err(self.error("more than 128 levels"));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    /// Behind an item: whether another one follows.
    fn goes_on(&mut self, end: u8) -> Result<bool, JsonError> {
        self.blank();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == end => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.error("a comma or the end is wanted")),
        }
    }

    /// At the beginning: whether the list is empty.
    fn is_empty(&mut self, end: u8) -> bool {
        self.blank();
        let empty = self.peek() == Some(end);
        self.at += usize::from(empty);
        empty
    }

    fn array(&mut self) -> Result<Json, JsonError> {
        let mut items = Vec::new();
        if self.is_empty(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value()?);
            if !self.goes_on(b']')? {
                return Ok(Json::Array(items));
            }
        }
    }

    fn object(&mut self) -> Result<Json, JsonError> {
        let mut members = Vec::new();
        if self.is_empty(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            self.blank();
            if self.peek() != Some(b'"') {
                return Err(self.error("the name of a member is wanted"));
            }
            let name = self.string()?;
            self.blank();
            if self.peek() != Some(b':') {
                return Err(self.error("a colon is wanted"));
            }
            self.at += 1;
            members.push((name, self.value()?));
            if !self.goes_on(b'}')? {
                return Ok(Json::Object(members));
            }
        }
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.error("a digit is wanted"));
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Json, JsonError> {
        let from = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let first = self.at;
        self.digits()?;
        if self.text.as_bytes()[first] == b'0' && self.at > first + 1 {
            return Err(self.error("a number does not begin with 0"));
        }
        let mut whole = true;
        if self.peek() == Some(b'.') {
            whole = false;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            whole = false;
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        let digits = &self.text[from..self.at];
        match digits.parse::<i64>() {
            Ok(number) if whole => Ok(Json::Int(number)),
            _ => digits.parse().map(Json::Float).map_err(|_| self.error("a number is wanted")),
        }
    }

    fn string(&mut self) -> Result<String, JsonError> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let from = self.at;
            while matches!(self.peek(), Some(byte) if byte != b'"' && byte != b'\\' && byte > 31) {
                self.at += 1;
            }
            text.push_str(&self.text[from..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    self.at += 1;
                    text.push(self.escape()?);
                }
                _ => return Err(self.error("the text does not end")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let byte = self.peek();
        self.at += 1;
        Ok(match byte {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.error("an unknown escape")),
        })
    }

    fn hex(&mut self) -> Result<u32, JsonError> {
        let unit = self.text.as_bytes().get(self.at..self.at + 4).and_then(|digits| {
            digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
        });
        self.at += 4;
        unit.ok_or_else(|| self.error("four digits are wanted"))
    }

    /// A half of a pair that stands alone becomes the replacement character.
    fn unicode(&mut self) -> Result<char, JsonError> {
        let high = self.hex()?;
        if (0xd800..0xdc00).contains(&high) && self.text.as_bytes().get(self.at..self.at + 2) == Some(b"\\u") {
            let back = self.at;
            self.at += 2;
            let low = self.hex()?;
            if (0xdc00..0xe000).contains(&low) {
                let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = back;
        }
        Ok(char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn values_come_back_as_they_were() {
        for text in [
            "null",
            "true",
            "[]",
            "{}",
            "[1,-2,9007199254740993,-9223372036854775808]",
            "1.5",
            "1e300",
            r#"{"a":[{"b":"ü 😀 \" \\ \n \u0000"}],"c":false}"#,
        ] {
            assert_eq!(Json::parse(text).unwrap().to_string(), text, "{text}");
        }
        assert_eq!(Json::parse(r#""\ud83d\ude00 \u00fc \/""#).unwrap(), Json::from("😀 ü /"));
        assert_eq!(Json::parse(r#""\ud83d\u0041\udc00""#).unwrap(), Json::from("\u{fffd}A\u{fffd}"));
        assert_eq!(
            json!({ "a": [1, null, { "b": "x".to_owned() + "y" }], "c": [1, 2].len() }).to_string(),
            r#"{"a":[1,null,{"b":"xy"}],"c":2}"#
        );
    }

    #[test]
    fn what_is_not_json_is_refused_with_its_place() {
        for (text, at) in [
            ("", 0),
            ("[1,]", 3),
            ("{\"a\" 1}", 5),
            ("01", 2),
            ("1.", 2),
            ("\"a", 2),
            ("nul", 0),
            ("1 2", 2),
            ("\"\\x\"", 3),
            ("{a:1}", 1),
        ] {
            assert_eq!(Json::parse(text).unwrap_err().at, at, "{text}");
        }
        assert!(Json::parse(&"[".repeat(100_000)).unwrap_err().what.contains("128"));
    }
}
