import { arrangementOf, type ConnectorGroup, type ConnectorLayout, wholeBlockKeys } from '@bufferwise/adapter-kit';
import type { ReuseScope } from '@bufferwise/cache-manager';
import { keyToHex, rootKey } from '@bufferwise/cache-manager/outside';
import { lifecycleKey } from '@bufferwise/core-policy';
import type { PageCodec } from '../encoding/page-codec.ts';
import { damaged, type PrefixDifference, PrefixFileError } from './prefix-file-error.ts';
import type { PrefixGroup, PrefixInfo } from './prefix-info.ts';

/** A group of the receiver, and what decodes its pages. */
export interface ReceivingGroup extends ConnectorGroup {
  readonly codec: PageCodec;
}

/**
 * The groups of a receiver in the order of those of a file.
 *
 * @throws {PrefixFileError} `prefix-file-mismatch` with everything in which the two differ
 */
export function matchGroups(
  info: PrefixInfo,
  layout: ConnectorLayout,
  groups: readonly ReceivingGroup[],
): readonly ReceivingGroup[] {
  const differences: PrefixDifference[] = [];
  if (info.modelFingerprint !== layout.modelFingerprint)
    differences.push({ what: 'model', inFile: modelWords(info), here: layout.modelFingerprint });
  if (info.tokensPerBlock !== layout.tokensPerBlock)
    differences.push({ what: 'tokens-per-block', inFile: `${info.tokensPerBlock}`, here: `${layout.tokensPerBlock}` });
  const left = new Map(groups.map((group) => [lifecycleKey(group.lifecycle), group]));
  const matched = info.groups.flatMap((group): ReceivingGroup[] => {
    const key = lifecycleKey(group.lifecycle);
    const here = left.get(key);
    left.delete(key);
    const words = here === undefined ? 'no such group' : wordsHere(here, formHere(group, here));
    if (here !== undefined && groupWords(group) === words) return [here];
    differences.push({ what: 'group', inFile: groupWords(group), here: words });
    return [];
  });
  for (const group of left.values()) differences.push({ what: 'group', inFile: 'no such group', here: wordsHere(group, null) });
  if (differences.length === 0) return matched;
  const words = differences.map(({ what, inFile, here }) => `${what}: ${inFile} in the file, ${here} here`);
  throw new PrefixFileError(
    'prefix-file-mismatch',
    `the prefix file is of another model, or of one that keeps its pages in another way (${words.join('; ')}); export it with the model and the settings that it is for`,
    differences,
  );
}

/**
 * Whether pages of a file may come under a scope: of the same LoRA, and of the same salt where they were exported under one. Without one they are
 * everybody's, and may come under any.
 *
 * @throws {PrefixFileError} `prefix-file-scope`; `prefix-file-damaged` when the tokens are not those of its key; {StateError} `invalid-scope`
 */
export function checkScope({ tokens, tokensPerBlock, loraId, salted, key }: PrefixInfo, scope: ReuseScope | undefined): void {
  rootKey(scope);
  const given = loraIdOf(scope);
  if (loraId !== given)
    throw new PrefixFileError(
      'prefix-file-scope',
      `the prefix file was exported ${loraWords(loraId)}, and is to be imported ${loraWords(given)}; pages of one are of no use to the other`,
    );
  if (salted && !isSalted(scope))
    throw new PrefixFileError(
      'prefix-file-scope',
      'the prefix file was exported under a salt, and none was given; pass the scope that it was exported under',
    );
  const exportedUnder = { loraId: scope?.loraId, salt: salted ? scope?.salt : undefined };
  if (keyToHex(wholeBlockKeys(tokens, exportedUnder, tokensPerBlock).at(-1) as Uint8Array) === key) return;
  if (!salted) throw damaged('has tokens that are not those of its key');
  throw new PrefixFileError(
    'prefix-file-scope',
    'the prefix file was exported under another salt than the one that was given; pass the scope that it was exported under',
  );
}

/** @param scope a valid one */
export function loraIdOf(scope: ReuseScope | undefined): bigint | null {
  const id = scope?.loraId ?? null;
  return id === null ? null : BigInt(id);
}

export function isSalted(scope: ReuseScope | undefined): boolean {
  return (scope?.salt ?? null) !== null;
}

/** Of the receiver, where the file keeps numbers in 8 bits: else it does not matter. */
function formHere({ form }: PrefixGroup, { codec }: ReceivingGroup): string | null {
  return form === null ? null : codec.form;
}

function modelWords({ modelName, modelFingerprint }: PrefixInfo): string {
  return modelName === null ? modelFingerprint : `${JSON.stringify(modelName)}, ${modelFingerprint}`;
}

function wordsHere(group: ReceivingGroup, form: string | null): string {
  return groupWords({ ...group, arrangement: arrangementOf(group.buffers), form });
}

function groupWords({ lifecycle, layerIds, pageBytes, arrangement, form }: Omit<PrefixGroup, 'ranges' | 'numPages'>): string {
  const words = [lifecycleWords(lifecycle), `layers ${layerIds.join(' ')}`, `pages of ${pageBytes} bytes`];
  if (arrangement !== null) words.push(`arranged as ${arrangement.slice(0, 16)}`);
  if (form !== null) words.push(`rows in 8 bits ${form}`);
  return words.join(', ');
}

function lifecycleWords(lifecycle: PrefixGroup['lifecycle']): string {
  const { kind, policy } = lifecycle;
  if (kind === 'ssm') return `${policy} state`;
  const { windowSize, numSinkBlocks, sparsityGroup } = lifecycle;
  const window = windowSize === null ? 'full attention' : `a window of ${windowSize}`;
  const sinks = numSinkBlocks === 0 ? '' : ` with ${numSinkBlocks} sink blocks`;
  return `${policy} ${window}${sinks}${sparsityGroup === null ? '' : ` of ${JSON.stringify(sparsityGroup)}`}`;
}

function loraWords(loraId: bigint | null): string {
  return loraId === null ? 'without a LoRA' : `under LoRA ${loraId}`;
}
