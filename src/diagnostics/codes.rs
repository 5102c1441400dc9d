//! Every code a diagnostic can have, with its severity and its one-line title.
//!
//! Numbers never change meaning. E00xx syntax, E01xx names, E02xx axes and types, E03xx time, E04xx sizes and limits,
//! W05xx warnings. The page that `rnnc explain` prints lies in `pages/<code>.md`.

use serde::{Serialize, Serializer};

macro_rules! codes {
    ($($name:ident = $code:literal, $title:literal;)*) => {
        /// The stable identity of a message.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $(#[doc = $title] $name,)* }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// As the user sees it: `E0012`.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $code,)* }
            }

            /// One line that says what the code is about.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }

            /// The page on the code, in Markdown: what it means, an example, what to do.
            pub fn page(self) -> &'static str {
                match self { $(Code::$name => include_str!(concat!("pages/", $code, ".md")),)* }
            }
        }
    };
}

codes! {
    NotText = "E0001", "the file is not UTF-8 text, or holds a NUL byte";
    EmptyFile = "E0002", "the file holds no cell and no function";
    UnexpectedToken = "E0003", "something else was expected here";
    BadNumber = "E0004", "a number is not written as the language has it";
    BadDelay = "E0005", "a delay is not a positive whole number of frames";
    BadSubscript = "E0006", "only `name[t-k]` may stand in brackets after a name";
    TooDeep = "E0007", "expressions are nested too deeply";
    FileTooLarge = "E0008", "the file, or a path in it, is too long";
    ForeignSyntax = "E0009", "syntax of another language";
    KeywordAsName = "E0010", "a keyword cannot be a name";
    UnknownName = "E0101", "no value has this name";
    UnknownDim = "E0102", "no dimension has this name";
    UnknownFunction = "E0103", "no function or cell has this name";
    Redefined = "E0104", "a name is defined twice";
    BuiltinName = "E0105", "a cell or function has the name of a built-in function";
    MissingEquation = "E0106", "a state or output has no equation";
    BadOutput = "E0107", "an output names something that cannot be one";
    WrongArity = "E0108", "a function is called with the wrong number of arguments";
    UnknownArgument = "E0109", "a function has no argument of this name";
    RecursiveFn = "E0110", "a function calls itself";
    NotSupported = "E0111", "this part of the language is not built yet";
    NoSuchCell = "E0112", "the file has no such cell, or several and none was chosen";
    WrongPattern = "E0113", "the number of names on the left does not fit the value on the right";
    AxisMismatch = "E0201", "axes do not combine";
    SilentOuter = "E0202", "only `*` may combine axes that no operand has together";
    ContractMismatch = "E0203", "the contracted axes differ in size";
    NoSuchAxis = "E0204", "the value has no such axis, or has it twice";
    DeclaredMismatch = "E0205", "an equation does not have its declared axes";
    NotDivisible = "E0206", "an axis cannot be cut into equal parts";
    ReshapeMismatch = "E0207", "a reshape changes the number of elements";
    BadEinsum = "E0208", "an einsum is not well formed";
    RepeatedAxis = "E0209", "an axis occurs twice where axes are told apart by name";
    IndexMisuse = "E0210", "an index is used as a number, or a number as an index";
    ExpectedSize = "E0211", "a size was expected here";
    ExpectedValue = "E0212", "a value was expected here";
    CannotInfer = "E0213", "axes cannot be inferred";
    BadArgument = "E0214", "an argument is not what the function takes";
    InstantCycle = "E0301", "a value depends on itself within one frame";
    DelayedConstant = "E0302", "a value that does not vary in time is read with a delay";
    DelayInFn = "E0303", "a delayed read inside a function";
    LookaheadInLoop = "E0304", "a look ahead inside a recurrence";
    BadInitial = "E0305", "an initial value varies in time";
    SizeOverflow = "E0401", "a size is too large";
    SizeNotPositive = "E0402", "a size is zero or negative";
    MissingDim = "E0403", "a dimension has no value, or a value has no dimension";
    TooLarge = "E0404", "the program is too large to compile";
    UnusedDeclaration = "W0501", "a declaration is never used";
    StateNotDelayed = "W0502", "a state is never read with a delay";
    UnusedEquation = "W0503", "an equation is never used";
}

impl Code {
    /// The severity that goes with the code.
    pub fn severity(self) -> super::Severity {
        if self.as_str().starts_with('W') {
            super::Severity::Warning
        } else {
            super::Severity::Error
        }
    }

    /// The code that the user wrote (`E0012`, `e0012`), if there is one.
    pub fn parse(text: &str) -> Option<Code> {
        Code::ALL
            .iter()
            .copied()
            .find(|c| c.as_str().eq_ignore_ascii_case(text.trim()))
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
