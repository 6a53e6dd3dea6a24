//! Databases: the requirement `database`.

use std::marker::PhantomData;
use std::ops::Deref;
use std::rc::Rc;
use std::vec;

use crate::base64;
use crate::context::{parked_json, Context};
use crate::error::{ErrorCode, HostError};
use crate::host::{check, raw};
use crate::json::Json;

/// Where statements go: a connection or a transaction.
pub struct Statements {
    handle: i32,
}

/// A session of its own. An execution may have two open to one database. It closes when it is dropped.
pub struct Connection(Statements);

/// Rolled back unless it is committed.
pub struct Transaction<'a> {
    statements: Statements,
    open: bool,
    // The connection may not close before its transaction.
    _connection: &'a Connection,
}

impl Deref for Connection {
    type Target = Statements;
    fn deref(&self) -> &Statements {
        &self.0
    }
}

impl Deref for Transaction<'_> {
    type Target = Statements;
    fn deref(&self) -> &Statements {
        &self.statements
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        unsafe { raw::sql_close(self.0.handle) };
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.open {
            unsafe { raw::sql_rollback(self.statements.handle) };
        }
    }
}

impl Context {
    /// Opens a connection to a database by its logical name; an empty name is `default`.
    pub fn database(&self, name: &str) -> Result<Connection, HostError> {
        let handle = check(unsafe { raw::sql_open(name.as_ptr(), name.len()) })?;
        Ok(Connection(Statements { handle }))
    }
}

impl Connection {
    /// Begins a transaction.
    pub fn begin(&self) -> Result<Transaction<'_>, HostError> {
        let handle = check(unsafe { raw::sql_begin(self.handle) })?;
        Ok(Transaction { statements: Statements { handle }, open: true, _connection: self })
    }
}

impl Transaction<'_> {
    /// Ends the transaction.
    pub fn commit(mut self) -> Result<(), HostError> {
        self.open = false;
        check(unsafe { raw::sql_commit(self.handle) })?;
        Ok(())
    }

    /// Undoes the transaction.
    pub fn rollback(mut self) -> Result<(), HostError> {
        self.open = false;
        check(unsafe { raw::sql_rollback(self.handle) })?;
        Ok(())
    }
}

/// A value of a statement.
pub trait ToSql {
    /// As the host takes it (docs/abi.md, "SQL").
    fn to_sql(&self) -> Json;
}

macro_rules! to_sql {
    ($($type:ty, $value:ident => $json:expr;)*) => {
        $(impl ToSql for $type {
            fn to_sql(&self) -> Json {
                let $value = self;
                $json
            }
        })*
    };
}

fn wrapped(kind: &str, value: Json) -> Json {
    Json::Object(vec![(kind.to_owned(), value)])
}

fn list(values: &[impl ToSql]) -> Json {
    wrapped("array", Json::Array(values.iter().map(ToSql::to_sql).collect()))
}

to_sql! {
    bool, value => Json::Bool(*value);
    i32, value => Json::Int(i64::from(*value));
    u32, value => Json::Int(i64::from(*value));
    i64, value => Json::Int(*value);
    f64, value => if value.is_finite() { Json::Float(*value) } else { Json::from(value.to_string()) };
    str, value => Json::from(value);
    String, value => Json::from(value);
    [u8], value => wrapped("base64", Json::from(base64::encode(value)));
    Vec<u8>, value => value.as_slice().to_sql();
    Json, value => wrapped("json", value.clone());
    [i32], value => list(value);
    [i64], value => list(value);
    [&str], value => list(value);
    [String], value => list(value);
    Vec<i32>, value => list(value);
    Vec<i64>, value => list(value);
    Vec<&str>, value => list(value);
    Vec<String>, value => list(value);
}

impl<T: ToSql + ?Sized> ToSql for &T {
    fn to_sql(&self) -> Json {
        (**self).to_sql()
    }
}

impl<T: ToSql> ToSql for Option<T> {
    fn to_sql(&self) -> Json {
        self.as_ref().map_or(Json::Null, ToSql::to_sql)
    }
}

/// A type a column can be read as.
pub trait FromSql: Sized {
    /// The one type of column it can be read from; empty for any whose value fits.
    const COLUMN: &'static str = "";
    /// None when the value is of another type.
    fn from_sql(value: &Json) -> Option<Self>;
}

macro_rules! from_sql {
    ($($type:ty, $value:ident => $read:expr;)*) => {
        $(impl FromSql for $type {
            fn from_sql($value: &Json) -> Option<$type> {
                $read
            }
        })*
    };
}

// Text could be base64 by chance.
impl FromSql for Vec<u8> {
    const COLUMN: &'static str = "bytea";

    fn from_sql(value: &Json) -> Option<Vec<u8>> {
        value.as_str().and_then(base64::decode)
    }
}

/// NULL and other types are no list.
fn list_from<T: FromSql>(value: &Json) -> Option<Vec<T>> {
    match value {
        Json::Array(items) => items.iter().map(T::from_sql).collect(),
        _ => None,
    }
}

from_sql! {
    bool, value => value.as_bool();
    i32, value => value.as_i64().and_then(|n| n.try_into().ok());
    i64, value => value.as_i64();
    // NaN and infinities come as text.
    f64, value => value.as_f64().or_else(|| value.as_str().and_then(|text| text.parse().ok()));
    String, value => value.as_str().map(str::to_owned);
    Json, value => Some(value.clone());
    Vec<i32>, value => list_from(value);
    Vec<i64>, value => list_from(value);
    Vec<f64>, value => list_from(value);
    Vec<bool>, value => list_from(value);
    Vec<String>, value => list_from(value);
}

impl<T: FromSql> FromSql for Option<T> {
    const COLUMN: &'static str = T::COLUMN;

    fn from_sql(value: &Json) -> Option<Option<T>> {
        if value.is_null() {
            return Some(None);
        }
        T::from_sql(value).map(Some)
    }
}

fn arguments(values: &[&dyn ToSql]) -> String {
    Json::Array(values.iter().map(|value| value.to_sql()).collect()).to_string()
}

impl Statements {
    /// Runs one statement that gives rows. An error begins with the SQLSTATE.
    pub fn query(&self, statement: &str, values: &[&dyn ToSql]) -> Result<Rows<'_>, HostError> {
        let values = arguments(values);
        let mut page = parked_json(unsafe {
            raw::sql_query(self.handle, statement.as_ptr(), statement.len(), values.as_ptr(), values.len(), 0)
        })?;
        let named = |what: &str| page["columns"].items().iter().map(|c| c[what].as_str().unwrap_or("").to_owned()).collect();
        let (columns, types) = (named("name"), named("type"));
        let mut rows = Rows { columns, types, rows: Vec::new().into_iter(), cursor: None, _of: PhantomData };
        rows.turn(&mut page);
        Ok(rows)
    }

    /// Runs one statement and gives how many rows it changed.
    pub fn exec(&self, statement: &str, values: &[&dyn ToSql]) -> Result<i64, HostError> {
        let values = arguments(values);
        let done = parked_json(unsafe {
            raw::sql_exec(self.handle, statement.as_ptr(), statement.len(), values.as_ptr(), values.len())
        })?;
        done["rows_affected"].as_i64().ok_or_else(|| HostError::unexpected("no rows_affected"))
    }
}

/// What a statement gave; further pages are fetched as they are asked for.
pub struct Rows<'a> {
    /// The names of the columns.
    pub columns: Rc<[String]>,
    types: Rc<[String]>,
    rows: vec::IntoIter<Json>,
    cursor: Option<i32>,
    // The host closes the cursors of a connection with it.
    _of: PhantomData<&'a Statements>,
}

impl Rows<'_> {
    fn turn(&mut self, page: &mut Json) {
        self.cursor = page["cursor"].as_i64().and_then(|cursor| cursor.try_into().ok());
        self.rows = match page.take("rows") {
            Json::Array(rows) => rows.into_iter(),
            _ => Vec::new().into_iter(),
        };
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<Row, HostError>;

    fn next(&mut self) -> Option<Result<Row, HostError>> {
        loop {
            if let Some(row) = self.rows.next() {
                let values = match row {
                    Json::Array(values) => values,
                    _ => Vec::new(),
                };
                return Some(Ok(Row { columns: self.columns.clone(), types: self.types.clone(), values }));
            }
            // A cursor whose page could not be fetched is gone.
            match parked_json(unsafe { raw::sql_fetch(self.cursor.take()?, 0) }) {
                Ok(mut page) => self.turn(&mut page),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        if let Some(cursor) = self.cursor {
            unsafe { raw::sql_close(cursor) };
        }
    }
}

/// A row of an answer.
pub struct Row {
    columns: Rc<[String]>,
    types: Rc<[String]>,
    values: Vec<Json>,
}

impl Row {
    /// The value of a column by its name: `row.get::<i64>("id")?`. A column that may be NULL is read as an `Option`.
    pub fn get<T: FromSql>(&self, name: &str) -> Result<T, HostError> {
        let wrong = |message: String| HostError { code: ErrorCode::InvalidArgument, message };
        let none = || wrong(format!("there is no column {name}; there are {}", self.columns.join(", ")));
        let at = self.columns.iter().position(|column| column == name).ok_or_else(none)?;
        let (value, column) = (self.values.get(at).ok_or_else(none)?, &self.types[at]);
        if !T::COLUMN.is_empty() && T::COLUMN != column.as_str() {
            return Err(wrong(format!("column {name} is {column}, not {}: read it as a String", T::COLUMN)));
        }
        T::from_sql(value).ok_or_else(|| wrong(format!("column {name} holds no {}", std::any::type_name::<T>())))
    }

    /// All values by the names of their columns.
    pub fn to_json(&self) -> Json {
        Json::Object(self.columns.iter().cloned().zip(self.values.iter().cloned()).collect())
    }
}
