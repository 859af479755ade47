//! JSON Schema (2020-12, and what is left of older drafts) as types that a programming language can express.

use std::collections::HashSet;

use percent_encoding::percent_decode_str;
use rehearse_document::json_schema::{self, View};
use serde_json::Value;

/// What a note of a property says besides its description.
const NOTED: &str = "format pattern default minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength \
                     minItems maxItems uniqueItems deprecated";

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Type {
    Any,
    Never,
    Null,
    Boolean,
    Integer,
    Number,
    String,
    /// A boolean, number or string.
    Literal(Value),
    Array(Box<Type>),
    Tuple {
        items: Vec<Type>,
        /// How many items there must be.
        required: usize,
        /// The type of further items; `None` if there are none.
        rest: Option<Box<Type>>,
    },
    Object(Object),
    Union(Vec<Type>),
    Intersection(Vec<Type>),
    /// A definition, by its index.
    Reference(usize),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Object {
    /// Sorted by name.
    pub(crate) fields: Vec<Field>,
    /// The type of other properties; `None` if the schema does not say.
    pub(crate) rest: Option<Box<Type>>,
}

impl Object {
    /// Whether the schema asks for properties that it does not name.
    pub(crate) fn has_rest(&self) -> bool {
        self.rest.as_deref().is_some_and(|rest| *rest != Type::Never)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) is_required: bool,
    /// Lines about the value.
    pub(crate) notes: Vec<String>,
}

/// A schema that others refer to.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    /// The last part of the reference; empty for the whole schema.
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) notes: Vec<String>,
}

/// The definitions of a schema. The first is the schema itself.
#[derive(Clone, Debug)]
pub(crate) struct Definitions(pub(crate) Vec<Definition>);

impl Definitions {
    pub(crate) fn read(schema: &Value) -> Definitions {
        let root = View::without_references(schema);
        let mut reader = Reader { root, targets: vec![(String::new(), root)] };
        let mut definitions = Vec::new();
        while let Some((name, schema)) = reader.targets.get(definitions.len()).cloned() {
            definitions.push(Definition { name, ty: reader.read(schema), notes: notes(schema) });
        }
        let mut definitions = Definitions(definitions);
        for index in 0..definitions.0.len() {
            if definitions.reaches(index, index, false, &mut HashSet::new()) {
                definitions.0[index].ty = Type::Any;
            }
        }
        definitions
    }

    /// Whether an input of this schema says anything.
    pub(crate) fn has_input(&self) -> bool {
        match self.resolve(self.get(0)) {
            Type::Object(object) => !object.fields.is_empty() || object.has_rest(),
            ty => *ty != Type::Any,
        }
    }

    pub(crate) fn get(&self, index: usize) -> &Type {
        self.0.get(index).map_or(&Type::Any, |definition| &definition.ty)
    }

    /// The type behind references. Definitions that are only themselves do not exist.
    pub(crate) fn resolve<'t>(&'t self, mut ty: &'t Type) -> &'t Type {
        while let Type::Reference(index) = ty {
            ty = self.get(*index);
        }
        ty
    }

    /// Whether a value of the definition contains another of it without an array, a map or a choice in between.
    pub(crate) fn contains_itself(&self, index: usize) -> bool {
        self.reaches(index, index, true, &mut HashSet::new())
    }

    fn reaches(&self, from: usize, to: usize, embedded: bool, seen: &mut HashSet<usize>) -> bool {
        let mut next = Vec::new();
        references(self.get(from), embedded, &mut next);
        next.into_iter().any(|index| index == to || (seen.insert(index) && self.reaches(index, to, embedded, seen)))
    }

    /// The fields of a type whose values are all objects.
    pub(crate) fn fields(&self, ty: &Type) -> Option<Vec<Field>> {
        let fields_of = |parts: &[Type]| parts.iter().map(|part| self.fields(part)).collect::<Option<Vec<_>>>();
        match ty {
            Type::Object(object) => Some(object.fields.clone()),
            Type::Reference(index) => self.fields(self.get(*index)),
            Type::Intersection(parts) => Some(merge(fields_of(parts)?, false)),
            Type::Union(parts) => Some(merge(fields_of(parts)?, true)),
            _ => None,
        }
    }
}

/// References that are the type itself, or an alternative or part of it; with `embedded`, also those in required fields.
fn references(ty: &Type, embedded: bool, found: &mut Vec<usize>) {
    match ty {
        Type::Reference(index) => found.push(*index),
        Type::Union(parts) | Type::Intersection(parts) => {
            parts.iter().for_each(|part| references(part, embedded, found));
        }
        Type::Object(object) if embedded => {
            let required = object.fields.iter().filter(|field| field.is_required);
            required.for_each(|field| references(&field.ty, embedded, found));
        }
        _ => {}
    }
}

/// The fields of objects that are the parts of one, or its alternatives.
fn merge(objects: Vec<Vec<Field>>, is_choice: bool) -> Vec<Field> {
    let count = objects.len();
    let mut fields: Vec<(Field, usize)> = Vec::new();
    for field in objects.into_iter().flatten() {
        let Some((known, found)) = fields.iter_mut().find(|(known, _)| known.name == field.name) else {
            fields.push((field, 1));
            continue;
        };
        *found += 1;
        let types = vec![known.ty.clone(), field.ty];
        if is_choice {
            known.is_required &= field.is_required;
            known.ty = union(types);
            if known.notes != field.notes {
                known.notes.clear();
            }
        } else {
            known.is_required |= field.is_required;
            known.ty = intersection(types);
            if known.notes.is_empty() {
                known.notes = field.notes;
            }
        }
    }
    // A field that only some alternatives have is optional.
    let is_required = |field: &Field, found| field.is_required && (!is_choice || found == count);
    let mut fields: Vec<_> =
        fields.into_iter().map(|(field, found)| Field { is_required: is_required(&field, found), ..field }).collect();
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    fields
}

/// What a person should know about a value: its description and the limits that types do not have.
fn notes(schema: View<'_>) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    if let Some(text) = schema.text("description") {
        notes.extend(text.trim().lines().map(|line| line.trim_end().to_owned()));
    }
    // A nullable value has its limits in the alternative that is not null.
    let is_null = |schema: &View<'_>| schema.text("type") == Some("null");
    let mut real = schema.alternatives().into_iter().flatten().filter(|schema| !is_null(schema));
    let only = real.next().filter(|_| real.next().is_none());
    let noted = NOTED.split(' ').filter_map(|key| Some((key, schema.get(key).or_else(|| only?.get(key))?)));
    notes.extend(noted.filter(|(_, value)| !value.is_null()).map(|(key, value)| match value {
        Value::String(text) => format!("{key}: {}", text.escape_debug()),
        value => format!("{key}: {value}"),
    }));
    notes
}

struct Reader<'s> {
    root: View<'s>,
    /// The referenced schemas and their names, in the order in which they were found.
    targets: Vec<(String, View<'s>)>,
}

impl<'s> Reader<'s> {
    fn read(&mut self, schema: View<'s>) -> Type {
        match schema.json() {
            Value::Bool(false) => return Type::Never,
            Value::Object(_) => {}
            _ => return Type::Any,
        }
        let mut parts = Vec::new();
        for key in ["$ref", "$dynamicRef"] {
            parts.extend(schema.text(key).map(|reference| self.reference(reference)));
        }
        let has = |key: &str| schema.get(key).is_some();
        parts.push(match (schema.choices(), schema.named_types()) {
            (Some(values), _) => union(values.iter().map(literal).collect()),
            (None, Some(types)) if !types.is_empty() => {
                union(types.into_iter().map(|kind| self.typed(kind, schema)).collect())
            }
            _ if has("properties") => self.object(schema),
            _ if has("items") || has("prefixItems") => self.array(schema),
            _ => Type::Any,
        });
        for key in ["anyOf", "oneOf"] {
            parts.extend(schema.schemas(key).map(|schemas| union(schemas.map(|schema| self.read(schema)).collect())));
        }
        parts.extend(schema.schemas("allOf").into_iter().flatten().map(|schema| self.read(schema)));
        let ty = intersection(parts);
        match schema.get("nullable") {
            Some(Value::Bool(true)) => union(vec![ty, Type::Null]),
            _ => ty,
        }
    }

    fn typed(&mut self, kind: json_schema::Type, schema: View<'s>) -> Type {
        match kind {
            json_schema::Type::Null => Type::Null,
            json_schema::Type::Boolean => Type::Boolean,
            json_schema::Type::Integer => Type::Integer,
            json_schema::Type::Number => Type::Number,
            json_schema::Type::String => Type::String,
            json_schema::Type::Array => self.array(schema),
            json_schema::Type::Object => self.object(schema),
        }
    }

    fn array(&mut self, schema: View<'s>) -> Type {
        let (items, rest) = schema.items();
        let rest = rest.map_or(Type::Any, |rest| self.read(rest));
        let Some(items) = items else { return Type::Array(Box::new(rest)) };
        let is_closed = schema.count("maxItems").is_some_and(|most| most <= items.len());
        Type::Tuple {
            required: schema.count("minItems").unwrap_or_default().min(items.len()),
            items: items.into_iter().map(|item| self.read(item)).collect(),
            rest: (!is_closed && rest != Type::Never).then(|| Box::new(rest)),
        }
    }

    fn object(&mut self, schema: View<'s>) -> Type {
        let mut fields = Vec::new();
        for (name, property) in schema.properties() {
            let (ty, notes) = (self.read(property), notes(property));
            fields.push(Field { name: name.to_owned(), ty, is_required: schema.is_required(name), notes });
        }
        for name in schema.required() {
            if fields.iter().all(|field| field.name != name) {
                fields.push(Field { name: name.to_owned(), ty: Type::Any, is_required: true, notes: Vec::new() });
            }
        }
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        let patterns: Vec<_> = schema.named("patternProperties").map(|(_, schema)| schema).collect();
        let rest = match (schema.schema("additionalProperties"), patterns.is_empty()) {
            (Some(rest), false) if *rest.json() == false => {
                Some(union(patterns.into_iter().map(|schema| self.read(schema)).collect()))
            }
            (_, false) => Some(Type::Any),
            (rest, true) => rest.map(|rest| self.read(rest)),
        };
        Type::Object(Object { fields, rest: rest.map(Box::new) })
    }

    /// A reference within the document; anything else may be any value.
    fn reference(&mut self, reference: &str) -> Type {
        let Some(target) = self.root.referred(reference) else { return Type::Any };
        if let Some(known) = self.targets.iter().position(|(_, schema)| std::ptr::eq(schema.json(), target.json())) {
            return Type::Reference(known);
        }
        let name = reference.rsplit(['/', '#']).next().unwrap_or_default();
        // The last part of a pointer without its escapes.
        let name = percent_decode_str(name).decode_utf8_lossy().replace("~1", "/").replace("~0", "~");
        self.targets.push((name, target));
        Type::Reference(self.targets.len() - 1)
    }
}

fn literal(value: &Value) -> Type {
    match value {
        Value::Null => Type::Null,
        Value::Array(_) => Type::Array(Box::new(Type::Any)),
        Value::Object(_) => Type::Object(Object::default()),
        scalar => Type::Literal(scalar.clone()),
    }
}

/// Each value once, in order.
pub(crate) fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for part in all {
        if !distinct.contains(&part) {
            distinct.push(part);
        }
    }
    distinct
}

pub(crate) fn union(parts: Vec<Type>) -> Type {
    let mut all = Vec::new();
    for part in parts {
        match part {
            Type::Any => return Type::Any,
            Type::Never => {}
            Type::Union(parts) => all.extend(parts),
            part => all.push(part),
        }
    }
    let mut distinct = distinct(all);
    match distinct.len() {
        0 => Type::Never,
        1 => distinct.swap_remove(0),
        _ => Type::Union(distinct),
    }
}

pub(crate) fn intersection(parts: Vec<Type>) -> Type {
    let mut all = Vec::new();
    for part in parts {
        match part {
            Type::Any => {}
            Type::Intersection(parts) => all.extend(parts),
            part => all.push(part),
        }
    }
    // `type` beside alternatives says nothing that they do not say.
    let plain = |ty: &Type| !matches!(ty, Type::Union(_) | Type::Literal(_));
    let kinds: Vec<_> = all.iter().map(kind).collect();
    let is_said = |index: usize| {
        let others = || (0..all.len()).filter(|other| *other != index);
        match &all[index] {
            Type::Object(object) => *object == Object::default() && all.len() > 1,
            ty if plain(ty) => others().any(|other| {
                kinds[index].is_some() && kinds[other] == kinds[index] && (!plain(&all[other]) || other < index)
            }),
            _ => false,
        }
    };
    let mut distinct = distinct((0..all.len()).filter(|index| !is_said(*index)).map(|index| all[index].clone()));
    let is_object = |ty: &Type| matches!(ty, Type::Object(_));
    if distinct.len() > 1 && distinct.iter().all(is_object) {
        let mut rest = None;
        let mut fields = Vec::new();
        for part in distinct {
            if let Type::Object(object) = part {
                rest = object.rest.or(rest);
                fields.push(object.fields);
            }
        }
        return Type::Object(Object { fields: merge(fields, false), rest });
    }
    match distinct.len() {
        0 if all.is_empty() => Type::Any,
        0 => all.swap_remove(0),
        1 => distinct.swap_remove(0),
        _ => Type::Intersection(distinct),
    }
}

/// The one JSON type of all values, for scalars; `integer` is a type of its own.
pub(crate) fn kind(ty: &Type) -> Option<&'static str> {
    match ty {
        Type::Boolean | Type::Literal(Value::Bool(_)) => Some("boolean"),
        Type::String | Type::Literal(Value::String(_)) => Some("string"),
        Type::Integer => Some("integer"),
        Type::Literal(Value::Number(number)) if !number.is_f64() => Some("integer"),
        Type::Number | Type::Literal(Value::Number(_)) => Some("number"),
        Type::Union(parts) => {
            let kinds: Vec<_> = parts.iter().map(kind).collect::<Option<_>>()?;
            let is_numeric = kinds.iter().all(|kind| matches!(*kind, "integer" | "number"));
            match kinds.first()? {
                first if kinds.iter().all(|kind| kind == first) => Some(first),
                _ if is_numeric => Some("number"),
                _ => None,
            }
        }
        _ => None,
    }
}
