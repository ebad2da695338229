import { fieldOf, type ModelFields, pathOf, readCount, readLayerKinds } from './model-fields.ts';
import { type AttentionPart, fullAttentionPart, type TokenRow } from './model-shape.ts';

/** Words of `layer_types`, and whether a layer of that kind has a window. */
const IS_WINDOWED: Readonly<Record<string, boolean>> = { full_attention: false, sliding_attention: true };

/**
 * Reads the window: tokens that a query sees, itself included; undefined when the model has none.
 * @see huggingface/transformers masking_utils.py: a key is seen when its position is above the query's minus the window
 */
export function readWindow(model: ModelFields): number | undefined {
  if (fieldOf(model, 'sliding_window') === undefined) return undefined;
  return readCount(model, 'sliding_window', { min: 1, unit: 'tokens' });
}

/** Which layers have a window: as `layer_types` says where it is given, else by the family's rule. */
export function readWindowedLayers(model: ModelFields, numLayers: number, rule: (layer: number) => boolean): readonly boolean[] {
  if (fieldOf(model, 'layer_types') !== undefined) return readLayerKinds(model, 'layer_types', numLayers, IS_WINDOWED);
  return Number.isNaN(numLayers) ? [] : Array.from({ length: numLayers }, (_, layer) => rule(layer));
}

/** One attention part a layer. Notes a window that a layer needs and the config lacks. */
export function attentionLayers(
  model: ModelFields,
  rows: readonly TokenRow[],
  isWindowed: readonly boolean[],
): readonly AttentionPart[] {
  const windowSize = readWindow(model);
  const first = isWindowed.indexOf(true);
  if (first >= 0 && windowSize === undefined) {
    const message = `is missing; layer ${first} has a window. Expected a whole number of tokens, at least 1.`;
    model.faults.note('config-missing', pathOf(model, 'sliding_window'), model.fields.sliding_window, message);
  }
  return isWindowed.map((windowed, modelLayer) => {
    const part = fullAttentionPart(modelLayer, rows);
    return windowed ? { ...part, windowSize } : part;
  });
}
