//! C expressions with their precedence and type, so that parentheses and conversions appear exactly where needed.

/// How tightly an expression's outermost operator binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prec {
    /// `a ? b : c`
    Conditional,
    /// `a && b`
    And,
    /// `a == b`
    Equality,
    /// `a < b`
    Relational,
    /// `a + b`
    Sum,
    /// `a * b`
    Product,
    /// `-a`, casts
    Prefix,
    /// names, literals, calls, `a[i]`
    Primary,
}

/// What an expression's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A `float`, or something that converts to one (16-bit storage).
    Float,
    /// An `int` or `long long`.
    Int,
    /// A truth value.
    Bool,
}

impl Type {
    /// The C type of a variable that holds it.
    pub fn c(self) -> &'static str {
        match self {
            Type::Float => "float",
            Type::Int => "int",
            Type::Bool => "bool",
        }
    }
}

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    /// The text.
    pub text: String,
    /// Its outermost operator.
    pub prec: Prec,
    /// Its type.
    pub ty: Type,
}

impl Expr {
    /// An expression with an operator.
    pub fn new(text: impl Into<String>, prec: Prec, ty: Type) -> Expr {
        Expr {
            text: text.into(),
            prec,
            ty,
        }
    }

    /// A name, call or element of floating type.
    pub fn float(text: impl Into<String>) -> Expr {
        Expr::new(text, Prec::Primary, Type::Float)
    }

    /// A floating literal; a negative one binds like a prefix.
    pub fn number(value: f64) -> Expr {
        let text = super::literal::float(value);
        let prec = if text.starts_with('-') {
            Prec::Prefix
        } else {
            Prec::Primary
        };
        Expr::new(text, prec, Type::Float)
    }

    /// A name or element of whole type.
    pub fn int(text: impl Into<String>) -> Expr {
        Expr::new(text, Prec::Primary, Type::Int)
    }

    /// The text as an operand of something that binds like `prec`.
    pub fn within(&self, prec: Prec) -> String {
        if self.prec >= prec {
            self.text.clone()
        } else {
            format!("({})", self.text)
        }
    }

    /// As a floating value.
    pub fn as_float(&self) -> Expr {
        match self.ty {
            Type::Float => self.clone(),
            Type::Int | Type::Bool => Expr::new(
                format!("(float){}", self.within(Prec::Prefix)),
                Prec::Prefix,
                Type::Float,
            ),
        }
    }

    /// As a truth value: whether it is not 0.
    pub fn as_bool(&self) -> Expr {
        match self.ty {
            Type::Bool => self.clone(),
            Type::Int => Expr::new(
                format!("{} != 0", self.within(Prec::Relational)),
                Prec::Equality,
                Type::Bool,
            ),
            Type::Float => Expr::new(
                format!("{} != 0.0f", self.within(Prec::Relational)),
                Prec::Equality,
                Type::Bool,
            ),
        }
    }

    /// `a op b`, where equal operators associate to the left (floating arithmetic must not be regrouped).
    pub fn infix(a: &Expr, op: &str, b: &Expr, prec: Prec, ty: Type) -> Expr {
        let tighter = match prec {
            Prec::Conditional | Prec::And => Prec::Equality,
            Prec::Equality => Prec::Relational,
            Prec::Relational => Prec::Sum,
            Prec::Sum => Prec::Product,
            Prec::Product => Prec::Prefix,
            Prec::Prefix | Prec::Primary => Prec::Primary,
        };
        Expr::new(format!("{} {op} {}", a.within(prec), b.within(tighter)), prec, ty)
    }

    /// `name(a, ...)`
    pub fn call(name: &str, args: &[Expr]) -> Expr {
        let list: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
        Expr::float(format!("{name}({})", list.join(", ")))
    }

    /// `condition ? a : b`
    pub fn select(condition: &Expr, a: &Expr, b: &Expr) -> Expr {
        let test = condition.as_bool().within(Prec::And);
        // The middle is bracketed by `?` and `:`, but a conditional there reads badly.
        Expr::new(
            format!("{test} ? {} : {}", a.within(Prec::And), b.within(Prec::Conditional)),
            Prec::Conditional,
            a.ty,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parentheses_keep_the_grouping() {
        let [a, b, c] = ["a", "b", "c"].map(Expr::float);
        let sum = |x: &Expr, y: &Expr| Expr::infix(x, "+", y, Prec::Sum, Type::Float);
        assert_eq!(sum(&sum(&a, &b), &c).text, "a + b + c");
        assert_eq!(sum(&a, &sum(&b, &c)).text, "a + (b + c)");
        let product = Expr::infix(&sum(&a, &b), "*", &Expr::number(-2.0), Prec::Product, Type::Float);
        assert_eq!(product.text, "(a + b) * -2.0f");
    }

    #[test]
    fn comparisons_become_numbers_only_where_numbers_are_wanted() {
        let less = Expr::infix(&Expr::float("a"), "<", &Expr::float("b"), Prec::Relational, Type::Bool);
        assert_eq!(
            Expr::select(&less, &Expr::number(1.0), &Expr::float("c")).text,
            "a < b ? 1.0f : c"
        );
        assert_eq!(less.as_float().text, "(float)(a < b)");
        assert_eq!(
            Expr::select(&Expr::float("m"), &less.as_float(), &Expr::number(0.0)).text,
            "m != 0.0f ? (float)(a < b) : 0.0f"
        );
    }
}
