import type { BufferForms } from '@bufferwise/adapter-disaggregation';
import type { KvStorage } from '@bufferwise/gpu-kernels';
import type { ModelDescription } from '../description/model-description.ts';

/** How keys and values lie in pages, so that another worker may keep them in blocks of other sizes, or in another type. Nothing is said of int8. */
export function transferForms({ layers }: ModelDescription, storage: KvStorage = 'f32'): BufferForms {
  return (layerId, role) => {
    const mixer = layers[layerId]?.mixer;
    if (storage === 'int8' || mixer?.kind !== 'attention' || (role !== 'key' && role !== 'value')) return undefined;
    return { dtype: storage, heads: [0, mixer.numKvHeads], headSize: mixer.headDim };
  };
}
