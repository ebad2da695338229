import { type Describe, readBase, readMamba2 } from './common.ts';

/** Mamba-2: a recurrent mixer in every layer, and nothing beside it. */
export const describeMamba2: Describe = (source) => {
  const { numLayers, ...base } = readBase(source, 'mamba2');
  const mixer = readMamba2(source);
  return { ...base, layers: Array.from({ length: numLayers }, () => ({ mixer, normBefore: true, normAfter: false })) };
};
