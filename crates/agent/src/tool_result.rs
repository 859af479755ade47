//! The result of an MCP tool as blocks for a model, in the form of a program.

use rehearse_client::{Content, Failure, ToolOutcome};
use rehearse_hub::projection::{
    Call, CallRejection, Projected, Projection, cpe, project, reject, structured_without_text,
};
use rehearse_llm::model::{Block, Media};

/// The blocks of a result, and whether the tool failed.
pub(crate) fn from_call(
    projection: Projection,
    call: &Call<'_>,
    result: Result<&ToolOutcome, &Failure>,
) -> (Vec<Block>, bool) {
    let failed = result.as_ref().map_or(true, |outcome| outcome.is_error);
    if projection == Projection::Canonical {
        return (result.map_or_else(|failure| vec![Block::text(failure.to_string())], canonical), failed);
    }
    let (blocks, is_error) = blocks(project(projection, call, result));
    (blocks, is_error || failed)
}

/// The blocks of a call that was not sent.
pub(crate) fn from_rejection(projection: Projection, call: &Call<'_>, rejection: &CallRejection) -> Vec<Block> {
    match projection {
        Projection::Canonical => vec![Block::text(rejection.to_string())],
        _ => blocks(reject(projection, call, rejection)).0,
    }
}

/// What the server sent: text and media as such, other blocks and structured content without text as JSON.
fn canonical(outcome: &ToolOutcome) -> Vec<Block> {
    let media = |mime_type: &str, data: &str| {
        Block::Media(Media { mime_type: mime_type.to_owned(), data: data.to_owned(), name: None })
    };
    let content = outcome.content.iter().map(|content| match content {
        Content::Text { text, .. } => Block::text(&**text),
        Content::Image { mime_type, data, .. } | Content::Audio { mime_type, data, .. } => media(mime_type, data),
        Content::Resource { raw, .. } | Content::ResourceLink { raw, .. } => Block::text(raw.get()),
    });
    let structured = structured_without_text(outcome).map(|structured| Block::text(structured.get()));
    content.chain(structured).collect()
}

/// The forms of programs other than cpe are records, which their models get as JSON.
fn blocks(projected: Projected<'_>) -> (Vec<Block>, bool) {
    match projected {
        Projected::Cpe(message) => (message.blocks.iter().map(block).collect(), message.tool_result_error),
        record => (vec![Block::text(serde_json::to_string(&record).unwrap_or_default())], false),
    }
}

fn block(block: &cpe::Block<'_>) -> Block {
    match block.modality_type {
        cpe::Modality::Text => Block::text(&*block.content),
        cpe::Modality::Image | cpe::Modality::Audio => Block::Media(Media {
            mime_type: block.mime_type.to_owned(),
            data: block.content.to_string(),
            name: block.extra_fields.as_ref().map(|extra| extra.filename.to_owned()),
        }),
    }
}
