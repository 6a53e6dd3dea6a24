use std::fmt;

/// What a handler returns. Any error ends the execution as failed, with its text in the record.
pub type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// Why the host refused a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    PermissionDenied,
    NotFound,
    InvalidArgument,
    TooLarge,
    Unavailable,
    DeadlinePassed,
    Internal,
    Conflict,
}

impl ErrorCode {
    /// The code as logs and JSON have it: `permission_denied`, `not_found` and so on.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorCode::PermissionDenied => "permission_denied",
            ErrorCode::NotFound => "not_found",
            ErrorCode::InvalidArgument => "invalid_argument",
            ErrorCode::TooLarge => "too_large",
            ErrorCode::Unavailable => "unavailable",
            ErrorCode::DeadlinePassed => "deadline_passed",
            ErrorCode::Internal => "internal",
            ErrorCode::Conflict => "conflict",
        }
    }

    pub(crate) fn of(result: i32) -> ErrorCode {
        match result {
            -1 => ErrorCode::PermissionDenied,
            -2 => ErrorCode::NotFound,
            -3 => ErrorCode::InvalidArgument,
            -4 => ErrorCode::TooLarge,
            -5 => ErrorCode::Unavailable,
            -6 => ErrorCode::DeadlinePassed,
            -8 => ErrorCode::Conflict,
            _ => ErrorCode::Internal,
        }
    }
}

/// A call the host refused. The message of a database begins with the SQLSTATE.
#[derive(Clone, Debug)]
pub struct HostError {
    pub code: ErrorCode,
    pub message: String,
}

impl HostError {
    /// An answer of the host that is not what the kit expects of it.
    pub(crate) fn unexpected(what: impl fmt::Display) -> HostError {
        HostError { code: ErrorCode::Internal, message: format!("unexpected answer of the host: {what}") }
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for HostError {}
