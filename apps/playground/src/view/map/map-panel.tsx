import { useSignal, useSignalEffect } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { NEUTRAL, POLICY_COLOURS, SHARED, STATE_COLOURS } from '../../map/cell-codes.ts';
import { SLOT_STATES } from '../../protocol/memory-frame.ts';
import { COLOUR_MODES } from '../../state/colour-mode.ts';
import { colourMode, conversations, frame, groups } from '../../state/store.ts';
import { bytesText, conversationHueIndex, conversationName, counted } from '../../story/names.ts';
import { Segments } from '../parts/segments.tsx';
import { KeptPrefixes } from './kept-prefixes.tsx';
import { MapController } from './map-controller.ts';
import { MemoryControls } from './memory-controls.tsx';
import { PoolMap } from './pool-map.tsx';

/** Every pool and every page, as they are now. */
export function MapPanel() {
  const [controller] = useState(() => new MapController());
  const shape = useSignal('');
  useSignalEffect(() => {
    const pools = frame.value?.pools ?? [];
    shape.value = pools.map(({ tier, groupIds, numSlots }) => `${tier}:${groupIds}:${numSlots}`).join(' ');
  });
  useEffect(() => controller.start(), [controller]);
  const { value: shown } = shape;
  const pools = shown === '' ? [] : (frame.peek()?.pools ?? []);
  const tiers = [...new Set(pools.map(({ tier }) => tier))];
  return (
    <section class="panel map" id="map" aria-labelledby="map-title">
      <div class="panel-head">
        <h2 id="map-title">Memory</h2>
        <Segments
          legend="Colour by"
          name="colour-mode"
          options={COLOUR_MODES}
          value={colourMode.value}
          onChange={(mode) => {
            colourMode.value = mode;
          }}
        />
      </div>
      <MemoryControls />
      <Legend />
      <p class="hidden" id="map-help">
        Arrow keys go from page to page, Enter follows a page into the tree.
      </p>
      {tiers.map((tier) => (
        <div key={tier} class="tier">
          <h3>
            {TIER_NAMES[pools.find((pool) => pool.tier === tier)?.medium ?? 'device']} <TierUse tier={tier} />
          </h3>
          <div class="pools">
            {pools.map((pool, index) =>
              pool.tier === tier ? <PoolMap key={`${shown} ${index}`} index={index} controller={controller} /> : null,
            )}
          </div>
        </div>
      ))}
      <Omitted />
      <KeptPrefixes />
    </section>
  );
}

function Omitted() {
  const omitted = frame.value?.omitted ?? 0;
  return omitted === 0 ? null : <p class="quiet">{counted(omitted, 'page')} more are not shown.</p>;
}

function TierUse({ tier }: { tier: number }) {
  const pools = (frame.value?.pools ?? []).filter((pool) => pool.tier === tier);
  const used = pools.reduce((sum, { numSlots, numFree, slotBytes }) => sum + (numSlots - numFree) * slotBytes, 0);
  const all = pools.reduce((sum, { numSlots, slotBytes }) => sum + numSlots * slotBytes, 0);
  return (
    <small>
      {bytesText(used)} of {bytesText(all)} in use
    </small>
  );
}

const TIER_NAMES = { device: 'On the device', host: 'In host memory', disk: 'On the disk' } as const;

const STATE_NAMES = ['free', 'in use now', 'held by who waits', 'anybody may reuse it', 'scratch'];

function Legend() {
  const mode = colourMode.value;
  return (
    <ul class="legend" aria-label={`Colours by ${mode}`}>
      {hues(mode).map(({ name, colour }) => (
        <li key={name}>
          <i style={{ '--hue': hueOf(colour) }} />
          {name}
        </li>
      ))}
      <li>
        <i class="state-locked" />
        in use now
      </li>
      <li>
        <i class="state-droppable" />
        can be reused, or evicted
      </li>
      <li>
        <i class="state-free" />
        free
      </li>
    </ul>
  );
}

function hues(mode: string): { name: string; colour: number }[] {
  if (mode === 'group') return groups.value.map(({ id, name }) => ({ name, colour: id % 8 }));
  if (mode === 'policy') return Object.entries(POLICY_COLOURS).map(([name, colour]) => ({ name, colour }));
  if (mode === 'status')
    return SLOT_STATES.slice(1, 4).map((_, i) => ({ name: STATE_NAMES[i + 1], colour: STATE_COLOURS[i + 1] }));
  return [
    ...[...conversations.value.keys()].map((id) => ({ name: conversationName(id), colour: conversationHueIndex(id) })),
    { name: 'several', colour: SHARED },
    { name: 'nobody', colour: NEUTRAL },
  ];
}

const hueOf = (colour: number) =>
  colour === NEUTRAL ? 'var(--cell-neutral)' : colour === SHARED ? 'var(--cell-shared)' : `var(--hue-${colour})`;
