import { AdapterError } from './errors.ts';

/** What every plugin says of itself. */
export interface Plugin<Supports> {
  /** The version of the interface that the plugin was written for. */
  readonly specVersion: 'v1';
  /** For people: in messages, statistics and names of tests. */
  readonly name: string;
  /** What of the optional parts it does. Never changes; users and conformance suites go by it alike. */
  readonly supports: Readonly<Supports>;
}

/** What every asynchronous call of a plugin takes. */
export interface CallOptions {
  /** Aborted: the call settles as soon as it can, with the signal's reason. */
  readonly signal?: AbortSignal;
}

/**
 * To be asked once, where a plugin comes in.
 *
 * @throws {AdapterError} `plugin-spec-version` when it was written for another version of the interfaces
 */
export function checkSpecVersion(plugin: { readonly specVersion: string; readonly name: string }): void {
  if (plugin.specVersion === 'v1') return;
  throw new AdapterError(
    'plugin-spec-version',
    `${plugin.name}: written for version ${JSON.stringify(plugin.specVersion)} of the plugin interfaces, and this is v1; install versions of the two that go together`,
  );
}
