/** A link leads back to where it was made; one that says nonsense says nothing. */
// @vitest-environment happy-dom
import { beforeEach, describe, expect, it } from "vitest";
import { page, playhead, run, stage, step, tab, type Stage, type Tab } from "../../src/state/app";
import { remember } from "../../src/state/address";
import { follow, here, link, parse, write, type Place } from "../../src/state/link";
import { goTo, seek } from "../../src/state/moves";
import { STORY, story } from "./memory";

beforeEach(() => {
  run.value = story();
  page.value = "run";
  location.hash = "";
  tab.value = "decision";
  stage.value = "seen";
});

describe("a link", () => {
  it("leads back to the step, the time, the tab and the layer, from everywhere", () => {
    const tabs: Tab[] = ["decision", "snapshot", "state", "console", "network", "raw", "integrity"];
    const stages: Stage[] = ["seen", "screen", "dom", "terminal", "video", "rrweb"];
    for (let i = 0; i < STORY.length; i++) {
      goTo(i);
      if (i % 2) seek(playhead.value + 200e6);
      tab.value = tabs[i % tabs.length] ?? "decision";
      stage.value = stages[i % stages.length] ?? "seen";
      const was = { step: step.value, playhead: playhead.value, tab: tab.value, stage: stage.value };
      const made = write(here());
      goTo((i * 7) % STORY.length);
      tab.value = "raw";
      stage.value = "seen";
      expect(follow(parse(made))).toBe(true);
      expect({ step: step.value, tab: tab.value, stage: stage.value }).toEqual({
        step: was.step,
        tab: was.tab,
        stage: was.stage,
      });
      expect(Math.abs(playhead.value - was.playhead)).toBeLessThan(1e6);
    }
  });

  it("names a step of a branch by the number that people know; a number before the branch is its place", () => {
    const open = story();
    open.outline.base = 5;
    run.value = open;
    goTo(3);
    expect(parse(write(here())).step).toBe(8);
    goTo(0);
    follow({ step: 8 });
    expect(step.value).toBe(3);
    follow({ step: 2 });
    expect(step.value).toBe(2);
  });

  it("is read as it was written", () => {
    const places: Place[] = [
      {},
      { step: 0 },
      { seq: 12 },
      { t: 1.5, step: 3 },
      { url: "https://a.example/run.skn?x=1&y=#z", run: "run_1", with: "run_2", tab: "raw", stage: "rrweb" },
    ];
    for (const place of places) expect(parse(write(place))).toEqual(place);
  });

  it("that says nonsense leads nowhere", () => {
    for (const hash of ["", "#", "#step=-1", "#step=abc&tab=evil&stage=<script>", "#t=NaN", "#=&&&", "#%%%"])
      expect(parse(hash)).toEqual({});
    goTo(3);
    expect(follow(parse("#step=x"))).toBe(false);
    expect(step.value).toBe(3);
  });

  it("keeps what the page was opened with, and holds no word of the recording", () => {
    location.hash = "#url=https%3A%2F%2Fa.example%2Frun.skn";
    goTo(41);
    remember();
    expect(parse(location.hash)).toMatchObject({ url: "https://a.example/run.skn", step: 41 });
    for (const word of ["refund", "Timeout", "denied"]) expect(link()).not.toContain(word);
  });
});
