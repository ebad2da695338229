import { AdapterError, type BindOptions, type ConsumerAdapter, checkLayout } from '@bufferwise/adapter-kit';
import type { LayerConfig, Lifecycle } from '@bufferwise/core-policy';
import type { StorageLayout } from '@bufferwise/scratch-allocator';

/**
 * What layer-based consumers look at in `bind`, before any page memory exists: all that `checkLayout` does, whether each layer has one
 * lifecycle, the one that its kernels were told of, and whether a block is one page of each buffer.
 *
 * @throws {AmbiguousLayerError} for a layer whose buffers are in several groups; {AdapterError} `layout-refused` for all else
 */
export function checkLegacyLayout(
  consumer: Pick<ConsumerAdapter, 'name' | 'layers' | 'supports'>,
  tokensPerBlock: number | undefined,
  layout: StorageLayout,
  options?: BindOptions,
): void {
  const { name, layers } = consumer;
  checkLayout(consumer, layout, options);
  if (tokensPerBlock !== undefined && layout.tokensPerBlock !== tokensPerBlock) {
    const why = `its blocks have ${layout.tokensPerBlock} tokens, and this consumer was made for ${tokensPerBlock}`;
    throw new AdapterError('layout-refused', `${name} cannot read this layout: ${why}`);
  }
  for (const layer of layers) {
    const { layerId } = layer;
    const lifecycle = layout.lifecycles.get(layout.lifecycles.getLayerGroupId(layerId));
    const [found, wanted] = [describeLifecycle(lifecycle), describeLayer(layer, layout.tokensPerBlock)];
    if (found !== wanted) throw refused(name, `layer ${layerId} is ${found} in it, and ${wanted} here`);
    for (const { role } of layer.buffers) {
      const { expansion } = layout.bufferAttr(layerId, role);
      if (expansion > 1) {
        const why = `buffer ${role} of layer ${layerId} has ${expansion} pages a block, and a table of slots names one; leave out \`tokensPerBlockOverride\``;
        throw refused(name, why);
      }
    }
  }
}

function describeLifecycle(lifecycle: Lifecycle): string {
  if (lifecycle.kind === 'ssm') return 'recurrent state';
  return describeAttention(lifecycle.windowSize, lifecycle.numSinkBlocks);
}

function describeLayer(layer: LayerConfig, tokensPerBlock: number): string {
  if (layer.type === 'ssm') return 'recurrent state';
  const { slidingWindowSize = null, numSinkTokens = 0 } = layer;
  return describeAttention(slidingWindowSize, slidingWindowSize === null ? 0 : Math.ceil(numSinkTokens / tokensPerBlock));
}

function describeAttention(windowSize: number | null, numSinkBlocks: number): string {
  return windowSize === null
    ? 'attention without a window'
    : `attention with a window of ${windowSize} tokens and ${numSinkBlocks} blocks of sinks`;
}

function refused(name: string, why: string): AdapterError {
  return new AdapterError('layout-refused', `${name} cannot read this layout: ${why}`);
}
