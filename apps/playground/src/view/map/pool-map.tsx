import { useComputed, useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { slotAt } from '../../map/cell-grid.ts';
import { NOTHING } from '../../protocol/memory-frame.ts';
import { frame, groups, selectedBlock, sideTab } from '../../state/store.ts';
import { bytesText, groupHue } from '../../story/names.ts';
import { PolicyTag } from '../parts/policy-tag.tsx';
import { describeSlot } from './describe-slot.ts';
import type { MapController } from './map-controller.ts';

/** One pool: its cells, what is under the pointer or the cursor, and where the chosen block lies. */
export function PoolMap({ index, controller }: { index: number; controller: MapController }) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  /** Slot that is pointed at, by mouse or keys. */
  const pointed = useSignal<number | null>(null);
  useLayoutEffect(() => {
    const [outer, inner] = [box.current, canvas.current];
    if (outer === null || inner === null) return;
    const letGo = controller.add(index, inner);
    const observer = new ResizeObserver(([entry]) => controller.setWidth(index, entry.contentRect.width));
    observer.observe(outer);
    controller.setWidth(index, outer.clientWidth);
    return () => {
      observer.disconnect();
      letGo();
    };
  }, [controller, index]);

  const slotUnder = (event: MouseEvent): number | null => {
    const grid = controller.gridOf(index);
    const numSlots = frame.peek()?.pools[index]?.numSlots ?? 0;
    if (grid === null || canvas.current === null) return null;
    const { left, top } = canvas.current.getBoundingClientRect();
    const scale = window.devicePixelRatio || 1;
    return slotAt(grid, numSlots, (event.clientX - left) * scale, (event.clientY - top) * scale);
  };
  const follow = (slot: number | null) => {
    const shown = frame.peek();
    const pool = shown?.pools[index];
    if (slot === null || shown === null || pool === undefined) return;
    const block = shown.block[pool.firstSlot + slot];
    selectedBlock.value = block === NOTHING || block === selectedBlock.peek() ? null : block;
    if (selectedBlock.peek() !== null) sideTab.value = 'tree';
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const grid = controller.gridOf(index);
    const numSlots = frame.peek()?.pools[index]?.numSlots ?? 0;
    if (grid === null || numSlots === 0) return;
    const at = pointed.peek() ?? 0;
    const to = {
      ArrowRight: at + 1,
      ArrowLeft: at - 1,
      ArrowDown: at + grid.columns,
      ArrowUp: at - grid.columns,
      Home: 0,
      End: numSlots - 1,
    }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      pointed.value = Math.min(numSlots - 1, Math.max(0, pointed.peek() === null ? 0 : to));
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      follow(pointed.peek());
    } else if (event.key === 'Escape') pointed.value = null;
  };
  return (
    <div class="pool">
      <PoolHead index={index} />
      <div
        class="cells"
        ref={box}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a map of cells that arrow keys go through, as its role says.
        tabIndex={0}
        role="application"
        aria-roledescription="map of pages"
        aria-label={`Pages of ${nameOf(index)}`}
        aria-describedby="map-help"
        onKeyDown={onKeyDown}
        onMouseMove={(event) => {
          pointed.value = slotUnder(event);
        }}
        onMouseLeave={() => {
          pointed.value = null;
        }}
        onClick={(event) => follow(slotUnder(event))}
        onBlur={() => {
          pointed.value = null;
        }}
      >
        <canvas ref={canvas} />
        <Rings index={index} controller={controller} />
        <Pointed index={index} controller={controller} slot={pointed.value} />
      </div>
    </div>
  );
}

function PoolHead({ index }: { index: number }) {
  const pool = frame.value?.pools[index];
  if (pool === undefined) return null;
  const used = pool.numSlots - pool.numFree;
  const [first] = pool.groupIds;
  const share = (slots: number) => `${(100 * slots) / Math.max(1, pool.numSlots)}%`;
  const policies = [...new Set(pool.groupIds.map((id) => groups.value[id]?.policy).filter((policy) => policy !== undefined))];
  return (
    <div class="pool-head">
      <div>
        <h4>{nameOf(index)}</h4>
        {policies.map((policy) => (
          <PolicyTag key={policy} policy={policy} />
        ))}
        <span class="use">
          {used.toLocaleString('en')} of {pool.numSlots.toLocaleString('en')}
        </span>
      </div>
      <div>
        <div class="meter" style={{ '--hue': groupHue(first ?? 0) }} aria-hidden="true">
          <div style={{ width: share(used) }} />
          {pool.mostInUse !== null && pool.mostInUse > 0 && <i style={{ left: share(pool.mostInUse) }} />}
        </div>
      </div>
      <div>
        <small>{bytesText(pool.slotBytes)} each</small>
        {pool.mostInUse !== null && pool.mostInUse > 0 && (
          <small class="most">{pool.mostInUse.toLocaleString('en')} in use at most</small>
        )}
      </div>
    </div>
  );
}

function nameOf(index: number): string {
  const ids = frame.value?.pools[index]?.groupIds ?? [];
  return ids.map((id) => groups.value[id]?.name ?? `group ${id}`).join(', ');
}

/** Rings around the pages of the chosen block. */
function Rings({ index, controller }: { index: number; controller: MapController }) {
  const slots = useComputed(() => {
    const shown = frame.value;
    const pool = shown?.pools[index];
    const { value: block } = selectedBlock;
    if (block === null || shown === null || pool === undefined) return '';
    const found: number[] = [];
    for (let slot = 0; slot < pool.numSlots; slot++) if (shown.block[pool.firstSlot + slot] === block) found.push(slot);
    return found.join(' ');
  });
  if (slots.value === '') return null;
  return (
    <>
      {slots.value.split(' ').map((slot) => (
        <Ring key={slot} slot={Number(slot)} index={index} controller={controller} kind="chosen" />
      ))}
    </>
  );
}

function Ring({ slot, index, controller, kind }: { slot: number; index: number; controller: MapController; kind: string }) {
  const place = placeOf(controller, index, slot);
  if (place === null) return null;
  const { x, y, edge } = place;
  return (
    <i
      class={`ring ${kind}`}
      style={{ left: `${x - 3}px`, top: `${y - 3}px`, width: `${edge + 6}px`, height: `${edge + 6}px` }}
    />
  );
}

function Pointed({ index, controller, slot }: { index: number; controller: MapController; slot: number | null }) {
  const shown = frame.value;
  const lines = slot === null || shown === null ? [] : describeSlot(shown, index, slot);
  const place = slot === null ? null : placeOf(controller, index, slot);
  const wide = (controller.gridOf(index)?.width ?? 0) / (window.devicePixelRatio || 1);
  return (
    <>
      {place !== null && slot !== null && <Ring slot={slot} index={index} controller={controller} kind="pointed" />}
      <div
        class="tip"
        role="status"
        hidden={lines.length === 0}
        style={
          place === null
            ? undefined
            : { top: `${place.y + place.edge + 10}px`, left: `${Math.max(0, Math.min(place.x - 20, Math.max(0, wide - 250)))}px` }
        }
      >
        {lines.map((line, at) => (
          <p key={line} class={at === 0 ? 'first' : undefined}>
            {line}
          </p>
        ))}
      </div>
    </>
  );
}

/** Where a cell lies, in CSS pixels. */
function placeOf(controller: MapController, index: number, slot: number): { x: number; y: number; edge: number } | null {
  const grid = controller.gridOf(index);
  if (grid === null) return null;
  const scale = window.devicePixelRatio || 1;
  const pitch = grid.cell + grid.gap;
  return {
    x: ((slot % grid.columns) * pitch) / scale,
    y: (Math.floor(slot / grid.columns) * pitch) / scale,
    edge: grid.cell / scale,
  };
}
