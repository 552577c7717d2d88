//! Plans that are no fleet, one test for each refusal.

use fleet_sim::{Fault, Fleet, FleetPlan, Moment, Operation, PlanRefusal};

fn refused(change: impl FnOnce(&mut FleetPlan)) -> PlanRefusal {
    let mut plan = FleetPlan::new(2, 1);
    change(&mut plan);
    Fleet::new(plan).expect_err("a refusal")
}

#[test]
fn an_engine_without_a_gpu() {
    assert_eq!(refused(|plan| plan.engines[1].world_size = 0), PlanRefusal::WorldSizeZero { engine: 1 });
}

#[test]
fn two_engines_with_one_instance_id() {
    let refusal = refused(|plan| plan.engines[1].instance_id = plan.engines[0].instance_id);
    assert_eq!(refusal, PlanRefusal::InstanceIdTwice { engines: (0, 1) });
}

#[test]
fn a_vocabulary_without_its_end() {
    assert_eq!(refused(|plan| plan.vocabulary = plan.eos_token_id), PlanRefusal::Vocabulary);
    assert_eq!(refused(|plan| (plan.vocabulary, plan.eos_token_id) = (1, 0)), PlanRefusal::Vocabulary);
}

#[test]
fn a_block_of_no_token() {
    assert_eq!(refused(|plan| plan.block_size = 0), PlanRefusal::BlockSizeZero);
}

#[test]
fn a_fault_on_no_engine() {
    let refusal = refused(|plan| plan.faults.push(Fault::StuckPause.preset(2)));
    assert_eq!(refusal, PlanRefusal::FaultEngine { fault: Fault::StuckPause, engine: 2 });
}

#[test]
fn a_fault_on_an_operation_that_it_cannot_disturb() {
    let refusal = refused(|plan| plan.faults.push(Fault::WrongWeights.preset(0).on(Operation::Flush)));
    assert_eq!(refusal, PlanRefusal::FaultOperation { fault: Fault::WrongWeights });
}

#[test]
fn a_fault_at_a_moment_that_it_does_not_have() {
    let refusal = refused(|plan| plan.faults.push(Fault::LostReplyAfter.preset(0).before()));
    assert_eq!(refusal, PlanRefusal::FaultMoment { fault: Fault::LostReplyAfter });
}

#[test]
fn a_fault_that_never_acts() {
    for fault in [Fault::LabelLost.preset(0).nth(0), Fault::LabelLost.preset(0).times(0)] {
        let refusal = refused(|plan| plan.faults.push(fault));
        assert_eq!(refusal, PlanRefusal::FaultNever { fault: Fault::LabelLost });
    }
    let alone = FleetPlan::new(1, 1).with_fault(Fault::WrongWorker.preset(0));
    assert_eq!(alone.check(), Err(PlanRefusal::FaultNever { fault: Fault::WrongWorker }));
}

#[test]
fn every_fault_has_a_name_a_line_and_a_preset_that_is_a_plan() {
    for fault in Fault::ALL {
        assert_eq!(Fault::from_name(fault.name()), Some(fault));
        assert!(
            fault
                .name()
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        );
        assert!(!fault.description().contains('\n'));
        assert_eq!(FleetPlan::new(2, 1).with_fault(fault.preset(1)).check(), Ok(()));
        for &operation in fault.operations() {
            let plan = fault.preset(1).on(operation);
            assert_eq!(FleetPlan::new(2, 1).with_fault(plan).check(), Ok(()));
            for moment in [Moment::Before, Moment::After] {
                let plan = if moment == Moment::Before { plan.before() } else { plan.after() };
                let free = fault.moment_is_free() || fault.preset(1).moment == moment;
                assert_eq!(FleetPlan::new(2, 1).with_fault(plan).check().is_ok(), free);
            }
        }
    }
    assert_eq!(Fault::from_name("Killed-Engine"), None);
}

#[test]
fn the_readme_lists_every_fault_with_its_line() {
    let readme = include_str!("../../README.md");
    for fault in Fault::ALL {
        let row = format!("| `{fault}` | {} |\n", fault.description());
        assert!(readme.contains(&row), "{row}");
    }
    for route in Operation::ALL.into_iter().filter_map(Operation::route) {
        assert!(readme.contains(&format!("`{route}`")), "{route}");
    }
}
