import { BufferwiseError } from '@bufferwise/core-policy';
import { formatBytes } from '@bufferwise/scratch-allocator';
import { openGpu } from '@bufferwise-internal/webgpu-node';
import { adapterName, startWithGpu } from '../gpu/open-device.ts';
import type { Finding } from './finding.ts';

/** What is looked at of an adapter. */
export interface AdapterFacts {
  readonly name: string;
  readonly isSoftware: boolean;
  readonly features: readonly string[];
  readonly limits: Readonly<Record<string, number>>;
}

/** What the kernels work within on every device, and what larger caches ask for. */
const LIMITS = [
  'maxBufferSize',
  'maxStorageBufferBindingSize',
  'maxStorageBuffersPerShaderStage',
  'maxComputeWorkgroupStorageSize',
  'maxComputeInvocationsPerWorkgroup',
] as const;

/** Features that make kernels faster or measurable; none is needed. */
const FEATURES = [
  { name: 'shader-f16', with: 'f16 arithmetic in kernels', without: 'f16 pages are unpacked to f32 first' },
  { name: 'subgroups', with: 'reductions within subgroups', without: 'reductions go through workgroup memory' },
  { name: 'timestamp-query', with: 'kernels can be timed', without: 'benches time whole steps only' },
] as const;

/** Looks for a device; may start this process again with the variables of the software one. */
export async function checkGpu(): Promise<{ findings: Finding[]; adapter: AdapterFacts | null }> {
  try {
    await startWithGpu();
    const adapter = await openGpu();
    const limits = Object.fromEntries(LIMITS.map((name) => [name, adapter.limits[name]]));
    const facts: AdapterFacts = {
      name: adapterName(adapter.info),
      isSoftware: adapter.info.isFallbackAdapter === true,
      features: [...adapter.features].sort(),
      limits,
    };
    const device = await adapter.requestDevice({ label: 'bufferwise doctor' });
    device.destroy();
    return { findings: describeAdapter(facts), adapter: facts };
  } catch (error) {
    if (!BufferwiseError.isInstance(error)) throw error;
    return { findings: [noAdapter(error.code, error.message)], adapter: null };
  }
}

/** What an adapter is good for. */
export function describeAdapter({ name, isSoftware, features, limits }: AdapterFacts): Finding[] {
  const device: Finding = {
    name: 'device',
    state: isSoftware ? 'warn' : 'ok',
    found: `${name}${isSoftware ? ' (software)' : ''}`,
    means: isSoftware ? 'everything works, slowly: the CPU does the GPU’s work' : 'demo, generate and the tests of kernels run',
    mend: isSoftware ? 'for speed, run where a GPU’s Vulkan, Metal or D3D12 driver answers' : null,
  };
  const { maxStorageBufferBindingSize: binding, maxBufferSize, maxStorageBuffersPerShaderStage: buffers } = limits;
  const sizes: Finding = {
    name: 'limits',
    state: 'ok',
    found: `${formatBytes(maxBufferSize)} a buffer, ${formatBytes(binding)} a binding, ${buffers} storage buffers a stage`,
    means: `a pool may have ${formatBytes(Math.min(binding, maxBufferSize))}; larger ones are cut`,
    mend: null,
  };
  const extras = FEATURES.map((feature): Finding => {
    const has = features.includes(feature.name);
    return {
      name: feature.name,
      state: 'ok',
      found: has ? 'yes' : 'no',
      means: has ? feature.with : feature.without,
      mend: null,
    };
  });
  return [device, sizes, ...extras];
}

function noAdapter(code: string, message: string): Finding {
  return {
    name: 'device',
    state: 'fail',
    found: `none (${code})`,
    means: 'demo, generate, serve and prefix export do not run; plan and replay do',
    mend: message,
  };
}
