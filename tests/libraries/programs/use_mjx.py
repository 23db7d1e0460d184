"""MuJoCo MJX: a pendulum that swings under `jit`, `scan`, `vmap` and `grad`, against MuJoCo in C."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import mjx

MODEL = """
<mujoco>
  <option timestep="0.005"/>
  <worldbody>
    <body pos="0 0 1">
      <joint name="swing" type="hinge" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.5" mass="1"/>
    </body>
  </worldbody>
  <actuator><motor joint="swing"/></actuator>
</mujoco>
"""
model = mujoco.MjModel.from_xml_string(MODEL)
on_device = mjx.put_model(model)
start = mjx.make_data(on_device)


@jax.jit
def angle_after(position, torque):
    data = start.replace(qpos=start.qpos + position, ctrl=start.ctrl + torque)
    data, path = jax.lax.scan(lambda d, _: (mjx.step(on_device, d),) * 2, data, None, length=50)
    return data.qpos[0]


data = mujoco.MjData(model)
data.qpos[0] = 0.5
for _ in range(50):
    mujoco.mj_step(model, data)
np.testing.assert_allclose(angle_after(0.5, 0.0), data.qpos[0], atol=1e-4)
many = jax.vmap(angle_after, (0, None))(jnp.array([0.5, 0.0, -0.5]), 0.0)
np.testing.assert_allclose(many, [data.qpos[0], 0.0, -data.qpos[0]], atol=1e-4)
slope = jax.jacfwd(angle_after, 1)(0.0, 0.0)
numeric = (angle_after(0.0, 0.1) - angle_after(0.0, -0.1)) / 0.2
np.testing.assert_allclose(slope, numeric, rtol=2e-2)
print("done")
