import { BufferwiseError } from './bufferwise-error.ts';

/**
 * A layer or buffer was named that the config does not have, or that is absent because its size is 0.
 * Code `unknown-layer` when the layer has no buffers at all, else `unknown-buffer`.
 */
export class UnknownBufferError extends BufferwiseError {
  /** Whether the layer has no buffers at all, or only not this one. */
  declare readonly code: 'unknown-layer' | 'unknown-buffer';
  /** The layer as it was passed. */
  readonly layerId: number;
  /** The role asked for; null when the layer itself was asked. */
  readonly role: string | null;
  /** Roles that the layer does have; empty for an unknown layer. */
  readonly knownRoles: readonly string[];

  constructor(layerId: number, role: string | null, knownRoles: readonly string[]) {
    super(knownRoles.length === 0 ? 'unknown-layer' : 'unknown-buffer', messageOf(layerId, role, knownRoles));
    this.layerId = layerId;
    this.role = role;
    this.knownRoles = Object.freeze([...knownRoles]);
  }
}

function messageOf(layerId: number, role: string | null, knownRoles: readonly string[]): string {
  const asked = role === null ? `Layer ${String(layerId)}` : `Buffer ${JSON.stringify(role)} of layer ${String(layerId)}`;
  if (knownRoles.length === 0) return `${asked} is unknown: the config has no buffer of that layer with a size above 0.`;
  return `${asked} is unknown: the layer's roles are ${knownRoles.map((known) => JSON.stringify(known)).join(', ')}.`;
}
