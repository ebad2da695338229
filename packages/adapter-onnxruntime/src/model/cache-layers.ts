import type { AttentionLayerConfig } from '@bufferwise/core-policy';
import type { InferenceSession } from 'onnxruntime-common';
import { type DecoderModel, KV_ELEMENT_BYTES, readDecoderModel } from './decoder-model.ts';

/**
 * The layers of a model as a cache config names them, for whoever makes the manager: full attention, key and value with one lifecycle.
 *
 * @param tokensPerBlock that of the config
 * @throws {OnnxDecoderError} `onnx-model` on a model that cannot be served
 */
export function onnxCacheLayers(
  session: Pick<InferenceSession, 'inputMetadata' | 'outputMetadata'>,
  tokensPerBlock: number,
): AttentionLayerConfig[] {
  return cacheLayers(readDecoderModel(session), tokensPerBlock);
}

/** A page holds `[numKvHeads, tokensPerBlock, headDim]`: the rows of a head side by side, as in the tensors. */
export function cacheLayers({ kvTensors }: DecoderModel, tokensPerBlock: number): AttentionLayerConfig[] {
  const layerIds = [...new Set(kvTensors.map(({ layerId }) => layerId))];
  return layerIds.map((layerId) => ({
    type: 'attention',
    layerId,
    buffers: kvTensors
      .filter((tensor) => tensor.layerId === layerId)
      .map(({ role, type, numKvHeads, headDim }) => ({
        role,
        size: numKvHeads * tokensPerBlock * headDim * KV_ELEMENT_BYTES[type],
      })),
  }));
}
