import type { HybridModel, OutsideOptions } from '@bufferwise/hybrid-engine';

/** Prefixes of one model that are kept beyond a reload of the page. */
export interface KeptPrefixes extends OutsideOptions {
  /** Forgets all of them. */
  forget(): Promise<void>;
  close(): Promise<void>;
}

/** Opens what earlier visits have left. @returns the reason, for people, where nothing can be kept */
export async function openKeptPrefixes(_model: HybridModel): Promise<KeptPrefixes | string> {
  return 'This build keeps nothing beyond a reload.';
}
