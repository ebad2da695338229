import type { PageNumbers } from '@bufferwise/adapter-kit';
import type { MemoryOptions } from './cache-layers.ts';
import { convolvedChannels } from './mamba2.ts';
import type { ModelDescription } from './model-description.ts';

/**
 * What the numbers of a model's buffers are, for whoever keeps pages outside: rows of keys and values are one head of one token, those of
 * states one channel of a head, those of convolution tails one token.
 */
export function pageNumbers(
  { layers }: ModelDescription,
  { storage = 'f32' }: MemoryOptions,
): (layerId: number, role: string) => PageNumbers | undefined {
  return (layerId, role) => {
    const { mixer } = layers[layerId];
    switch (role) {
      case 'key':
      case 'value':
        return mixer.kind === 'attention' ? { type: storage, rowLength: mixer.headDim } : undefined;
      case 'key_scale':
      case 'value_scale':
        return { type: 'f32', rowLength: 1 };
      case 'ssm_state':
        return mixer.kind === 'mamba2' ? { type: 'f32', rowLength: mixer.stateSize } : undefined;
      case 'conv_state':
        return mixer.kind === 'mamba2' ? { type: 'f32', rowLength: convolvedChannels(mixer) } : undefined;
      default:
        return undefined;
    }
  };
}
