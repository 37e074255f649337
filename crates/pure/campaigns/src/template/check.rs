//! What a template may consist of. Anything else is refused when the campaign is saved.
//!
//! Left out are the parts of Jinja that compute: arithmetic and concatenation, which could make
//! long texts out of short ones, assignments, functions and methods. Filters and tests are checked
//! here too, because the engine looks them up only when a template is rendered.

use super::filters::{FILTERS, TESTS};
use crate::limits::{TAG_TOKENS_MAX, TEMPLATE_STATEMENTS_MAX};
use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, Stmt};
use minijinja::machinery::{Token, parse, tokenize};
use minijinja::{Error, ErrorKind};
use std::collections::BTreeSet;

/// Checks a text. The error is the end of a sentence, with the line.
pub(super) fn check(text: &str, roots: &[&str]) -> Result<(), String> {
    check_size(text)?;
    let template = parse(text, "", Default::default());
    let template = template.map_err(|error| problem_of(&error))?;
    let roots = roots.iter().copied().collect();
    statement(&template, &roots)
}

/// Bounds what is parsed. The parser bounds the nesting of parentheses and statements, but `a.b.c`,
/// `a and b and c` and `elif` lie in each other too, and may exhaust the stack.
fn check_size(text: &str) -> Result<(), String> {
    let mut statements = 0;
    let mut tokens = 0;
    for token in tokenize(text, false, Default::default()) {
        let (token, span) = token.map_err(|error| problem_of(&error))?;
        match token {
            Token::TemplateData(_) => {}
            Token::VariableStart => tokens = 0,
            Token::BlockStart => {
                tokens = 0;
                statements += 1;
            }
            _ => tokens += 1,
        }

        let line = span.start_line;
        if tokens > TAG_TOKENS_MAX {
            return refused(line, "the tag is too long");
        }
        if statements > TEMPLATE_STATEMENTS_MAX {
            let text = format_args!("a template has at most {TEMPLATE_STATEMENTS_MAX} statements");
            return refused(line, text);
        }
    }
    Ok(())
}

/// An error of the engine as the end of a sentence.
pub(super) fn problem_of(error: &Error) -> String {
    let text = match error.kind() {
        ErrorKind::OutOfFuel => "it does too much work".to_owned(),
        ErrorKind::UndefinedError => "a value is missing".to_owned(),
        _ => error.detail().map_or_else(|| error.kind().to_string(), str::to_owned),
    };
    let line = error.line().unwrap_or(1);
    format!("line {line}: {text}")
}

fn refused(line: u16, text: impl std::fmt::Display) -> Result<(), String> {
    Err(format!("line {line}: {text}"))
}

fn statements(all: &[Stmt<'_>], names: &BTreeSet<&str>) -> Result<(), String> {
    all.iter().try_for_each(|each| statement(each, names))
}

fn statement(statement: &Stmt<'_>, names: &BTreeSet<&str>) -> Result<(), String> {
    let refused_statement = |line, name| {
        refused(line, format_args!("`{name}` is not available in templates, only if and for are"))
    };
    match statement {
        Stmt::Template(template) => statements(&template.children, names),
        Stmt::EmitRaw(_) => Ok(()),
        Stmt::EmitExpr(emit) => value(&emit.expr, names),
        Stmt::IfCond(branch) => {
            value(&branch.expr, names)?;
            statements(&branch.true_body, names)?;
            statements(&branch.false_body, names)
        }
        Stmt::ForLoop(cycle) => {
            if cycle.recursive {
                return refused_statement(cycle.span().start_line, "recursive");
            }

            value(&cycle.iter, names)?;
            let mut inner = names.clone();
            inner.insert("loop");
            declare(&cycle.target, &mut inner)?;
            cycle.filter_expr.iter().try_for_each(|filter| value(filter, &inner))?;
            statements(&cycle.body, &inner)?;
            statements(&cycle.else_body, names)
        }
        Stmt::WithBlock(with) => refused_statement(with.span().start_line, "with"),
        Stmt::Set(set) => refused_statement(set.span().start_line, "set"),
        Stmt::SetBlock(set) => refused_statement(set.span().start_line, "set"),
        Stmt::AutoEscape(block) => refused_statement(block.span().start_line, "autoescape"),
        Stmt::FilterBlock(block) => refused_statement(block.span().start_line, "filter"),
        Stmt::Do(call) => refused_statement(call.span().start_line, "do"),
        // Other crates of a build may switch on further parts of the engine.
        #[allow(unreachable_patterns)]
        _ => refused_statement(1, "a statement of this kind"),
    }
}

/// The names that a `for` gives to its items.
fn declare<'a>(target: &Expr<'a>, names: &mut BTreeSet<&'a str>) -> Result<(), String> {
    match target {
        Expr::Var(name) => {
            names.insert(name.id);
            Ok(())
        }
        Expr::List(list) => list.items.iter().try_for_each(|item| declare(item, names)),
        Expr::Tuple(tuple) => tuple.items.iter().try_for_each(|item| declare(item, names)),
        other => refused(other.span().start_line, "a `for` names its items"),
    }
}

fn value(each: &Expr<'_>, names: &BTreeSet<&str>) -> Result<(), String> {
    let inner = |each: &Expr<'_>| value(each, names);

    match each {
        Expr::Const(_) => Ok(()),
        Expr::Var(name) if names.contains(name.id) => Ok(()),
        Expr::Var(name) => {
            let known: Vec<&str> = names.iter().copied().collect();
            let line = name.span().start_line;
            refused(
                line,
                format_args!("there is no value `{}`, only {}", name.id, known.join(", ")),
            )
        }
        Expr::GetAttr(get) => inner(&get.expr),
        Expr::GetItem(get) => {
            inner(&get.expr)?;
            inner(&get.subscript_expr)
        }
        Expr::UnaryOp(unary) => inner(&unary.expr),
        Expr::BinOp(binary) => {
            if let Some(operator) = computing(binary.op) {
                let text = format_args!("`{operator}` is not available in templates");
                return refused(binary.span().start_line, text);
            }
            inner(&binary.left)?;
            inner(&binary.right)
        }
        Expr::Compare(compare) => {
            inner(&compare.expr)?;
            compare.ops.iter().try_for_each(|op| inner(&op.expr))
        }
        Expr::IfExpr(choice) => {
            inner(&choice.test_expr)?;
            inner(&choice.true_expr)?;
            choice.false_expr.iter().try_for_each(inner)
        }
        Expr::Filter(filter) => {
            known("filter", filter.name, &FILTERS, filter.span().start_line)?;
            filter.expr.iter().try_for_each(inner)?;
            arguments(&filter.args, inner)
        }
        Expr::Test(test) => {
            known("test", test.name, &TESTS, test.span().start_line)?;
            inner(&test.expr)?;
            arguments(&test.args, inner)
        }
        Expr::Call(call) => {
            refused(call.span().start_line, "functions are not available in templates")
        }
        Expr::Slice(slice) => refused(slice.span().start_line, "slices are not available"),
        Expr::List(list) => list.items.iter().try_for_each(inner),
        Expr::Tuple(tuple) => tuple.items.iter().try_for_each(inner),
        Expr::Map(map) => refused(map.span().start_line, "maps are not available in templates"),
    }
}

fn arguments(
    all: &[CallArg<'_>],
    check: impl Fn(&Expr<'_>) -> Result<(), String>,
) -> Result<(), String> {
    all.iter().try_for_each(|argument| match argument {
        CallArg::Pos(value) | CallArg::Kwarg(_, value) => check(value),
        CallArg::PosSplat(value) | CallArg::KwargSplat(value) => {
            refused(value.span().start_line, "`*` is not available in templates")
        }
    })
}

fn known(kind: &str, name: &str, all: &[&str], line: u16) -> Result<(), String> {
    if all.contains(&name) {
        return Ok(());
    }
    refused(line, format_args!("there is no {kind} `{name}`, only {}", all.join(", ")))
}

/// The sign of an operator that makes something new.
fn computing(operator: BinOpKind) -> Option<&'static str> {
    match operator {
        BinOpKind::Add => Some("+"),
        BinOpKind::Sub => Some("-"),
        BinOpKind::Mul => Some("*"),
        BinOpKind::Div => Some("/"),
        BinOpKind::FloorDiv => Some("//"),
        BinOpKind::Rem => Some("%"),
        BinOpKind::Pow => Some("**"),
        BinOpKind::Concat => Some("~"),
        BinOpKind::Eq
        | BinOpKind::Ne
        | BinOpKind::Lt
        | BinOpKind::Lte
        | BinOpKind::Gt
        | BinOpKind::Gte
        | BinOpKind::ScAnd
        | BinOpKind::ScOr
        | BinOpKind::In => None,
    }
}
